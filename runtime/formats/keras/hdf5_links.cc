// hdf5_links.cc: the links of large groups in the layout of HDF5 1.8 and later.
//
// Link messages lie in a "fractal heap": blocks whose sizes double from row to row of a table, of which the first rows hold data and further rows hold tables of
// the same kind. A "version 2 B-tree" lists where in the heap each message begins, and its length. Format: "HDF5 File Format Specification Version 3.0",
// sections III.A.2 and III.G. Neither checksums nor free space are looked at.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/formats/keras/hdf5_bytes.h"

namespace serin::formats::keras {
namespace {

constexpr size_t kMostLinks = 1'000'000;
constexpr int kMostDepth = 16;

Error bad_links(std::string_view problem) { return {Code::kCorrupt, fmt::format("HDF5: {}", problem)}; }

/// Bytes of a number that is at most `most`.
size_t width_of(uint64_t most) { return (static_cast<size_t>(std::bit_width(std::max<uint64_t>(most, 1))) + 7) / 8; }

/// A heap, from which messages are read by their place.
class Heap {
 public:
  static Result<Heap> open(Hdf5Source& source, uint64_t address) {
    Heap heap(source);
    SERIN_TRY(Hdf5Fields in, source.read(address, 142));
    if (!in.sign("FRHP") || in.number(1) != 0) return bad_links("a group has a damaged heap");
    heap.id_size_ = in.number(2);
    if (in.number(2) != 0) return Error{Code::kUnsupported, "HDF5: names of a group are compressed"};
    in.skip(1 + 4 + 12 * 8);
    heap.width_ = in.number(2);
    heap.first_ = in.number(8);
    heap.most_direct_ = in.number(8);
    heap.bits_ = in.number(2);
    in.skip(2);
    heap.root_ = in.number(8);
    heap.rows_ = in.number(2);
    const bool sane = !in.overrun() && heap.width_ >= 1 && heap.width_ <= 1024 && std::has_single_bit(heap.first_) &&
                      std::has_single_bit(heap.most_direct_) && heap.first_ <= heap.most_direct_ && heap.most_direct_ <= UINT32_MAX &&
                      heap.bits_ >= 1 && heap.bits_ <= 64 && heap.rows_ <= 64;
    if (!sane) return bad_links("a group has a damaged heap");
    return heap;
  }

  size_t id_size() const { return id_size_; }

  /// The message of a heap id.
  Result<Hdf5Fields> read(Hdf5Fields id) {
    if (((id.number(1) >> 4) & 3) != 0) return Error{Code::kUnsupported, "HDF5: a name of a group is too long"};
    const size_t offset_width = (bits_ + 7) / 8;
    const uint64_t offset = id.number(offset_width), length = id.number(std::min(width_of(most_direct_), id.left()));
    if (id.overrun() || length == 0) return bad_links("a group names no place in its heap");
    if (rows_ == 0) return in_block(root_, 0, first_, offset, length);
    return in_table(root_, 0, rows_, offset, length, 0);
  }

 private:
  explicit Heap(Hdf5Source& source) : source_(source) {}

  uint64_t block_size(size_t row) const { return row < 2 ? first_ : first_ << std::min<size_t>(row - 1, 62); }

  Result<Hdf5Fields> in_block(uint64_t address, uint64_t begin, uint64_t size, uint64_t offset, uint64_t length) {
    if (address == kNoAddress || offset < begin || offset - begin > size || length > size - (offset - begin))
      return bad_links("a group names a place outside of its heap");
    return source_.read(address + (offset - begin), length);
  }

  /// A table of `rows` rows whose blocks begin at `begin` of the heap.
  Result<Hdf5Fields> in_table(uint64_t address, uint64_t begin, size_t rows, uint64_t offset, uint64_t length, int depth) {
    if (depth > kMostDepth || rows > 64) return bad_links("a heap is nested too deep");
    const size_t head = 4 + 1 + 8 + (bits_ + 7) / 8;
    SERIN_TRY(Hdf5Fields in, source_.read(address, head + rows * width_ * 8));
    if (!in.sign("FHIB")) return bad_links("a heap has a damaged table");
    in.skip(head - 4);
    uint64_t at = begin;
    for (size_t row = 0; row < rows; ++row) {
      const uint64_t size = block_size(row);
      for (size_t i = 0; i < width_; ++i) {
        const uint64_t child = in.number(8);
        const bool here = offset >= at && offset - at < size;
        if (here && size <= most_direct_) return in_block(child, at, size, offset, length);
        if (here) {
          if (child == kNoAddress) break;
          // Rows of a table that fills a block of this size: width * first * 2^(rows - 1) = size.
          const uint64_t first_row = first_ * width_;
          const size_t below = size < first_row ? 0 : static_cast<size_t>(std::bit_width(size / first_row));
          return below == 0 ? Result<Hdf5Fields>(bad_links("a heap has a damaged table"))
                            : in_table(child, at, below, offset, length, depth + 1);
        }
        if (size > UINT64_MAX - at) return bad_links("a heap is too large");
        at += size;
      }
    }
    return bad_links("a group names a place outside of its heap");
  }

  Hdf5Source& source_;
  uint64_t id_size_ = 0, width_ = 0, first_ = 0, most_direct_ = 0, bits_ = 0, root_ = kNoAddress, rows_ = 0;
};

/// A tree whose records are read in the order of the nodes.
class Tree {
 public:
  explicit Tree(Hdf5Source& source) : source_(source) {}

  Result<std::vector<Hdf5Fields>> records(uint64_t address) {
    SERIN_TRY(Hdf5Fields in, source_.read(address, 38));
    const bool signed_so = in.sign("BTHD") && in.number(1) == 0;
    type_ = in.number(1);
    node_size_ = in.number(4);
    record_size_ = in.number(2);
    depth_ = in.number(2);
    in.skip(2);
    const uint64_t root = in.number(8), count = in.number(2), total = in.number(8);
    const bool sane = signed_so && !in.overrun() && (type_ == 5 || type_ == 6) && record_size_ >= 9 && record_size_ <= 64 &&
                      node_size_ > 2 * kHead + 64 && node_size_ <= (1U << 20) && depth_ <= kMostDepth && total <= kMostLinks;
    if (!sane) return bad_links("a group has a damaged tree");
    most_.assign(1, (node_size_ - kHead) / record_size_);
    below_.assign(1, most_[0]);
    for (size_t level = 1; level <= depth_; ++level) {
      const size_t pointer = pointer_size(level);
      if (node_size_ < kHead + pointer + record_size_ + pointer) return bad_links("a group has a damaged tree");
      most_.push_back((node_size_ - kHead - pointer) / (record_size_ + pointer));
      below_.push_back(std::min<uint64_t>((most_[level] + 1) * below_[level - 1] + most_[level], UINT32_MAX));
    }
    if (total > 0) SERIN_CHECK(add_node(root, count, depth_));
    if (records_.size() != total) return bad_links("a tree has another number of records than it says");
    return std::move(records_);
  }

 private:
  static constexpr size_t kHead = 10;  // signature, version, type, checksum

  /// Of an address, the number of records there, and the number of those below.
  size_t pointer_size(size_t level) const { return 8 + width_of(most_[0]) + (level > 1 ? width_of(below_[level - 1]) : 0); }

  Status add_node(uint64_t address, uint64_t count, size_t level) {
    if (count > most_[level] || records_.size() + count > kMostLinks) return bad_links("a node of a tree has too many records");
    SERIN_TRY(Hdf5Fields in, source_.read(address, node_size_));
    if (!in.sign(level == 0 ? "BTLF" : "BTIN") || in.number(1) != 0 || in.number(1) != type_)
      return bad_links("a group has a damaged tree");
    for (uint64_t i = 0; i < count; ++i) records_.push_back(in.part(record_size_));
    if (level == 0) return {};
    const size_t width = width_of(most_[0]), total_width = level > 1 ? width_of(below_[level - 1]) : 0;
    for (uint64_t i = 0; i <= count; ++i) {
      const uint64_t child = in.number(8), children = in.number(width);
      in.skip(total_width);
      if (in.overrun()) return bad_links("a node of a tree is cut off");
      SERIN_CHECK(add_node(child, children, level - 1));
    }
    return {};
  }

  Hdf5Source& source_;
  uint64_t type_ = 0, node_size_ = 0, record_size_ = 0, depth_ = 0;
  std::vector<uint64_t> most_, below_;  // records of a node, and of a node with all nodes below it, by level
  std::vector<Hdf5Fields> records_;
};

}  // namespace

Hdf5Link read_hdf5_link(Hdf5Fields& in) {
  Hdf5Link link;
  if (in.number(1) != 1) return link;
  const uint64_t flags = in.number(1);
  const uint64_t kind = (flags & 8) != 0 ? in.number(1) : 0;
  if ((flags & 4) != 0) in.skip(8);
  if ((flags & 16) != 0) in.skip(1);
  const uint64_t size = in.number(size_t{1} << (flags & 3));
  if (size > in.left()) return link;
  link.name = in.text(size);
  if (kind == 0) link.address = in.address();
  if (in.overrun()) return {};
  return link;
}

Result<std::vector<Hdf5Link>> read_dense_links(Hdf5Source& source, uint64_t heap_address, uint64_t tree_address) {
  SERIN_TRY(Heap heap, Heap::open(source, heap_address));
  SERIN_TRY(std::vector<Hdf5Fields> records, Tree(source).records(tree_address));
  std::vector<Hdf5Link> links;
  for (Hdf5Fields& record : records) {
    if (record.left() < heap.id_size()) return bad_links("a record of a tree is too short");
    record.skip(record.left() - heap.id_size());
    SERIN_TRY(Hdf5Fields message, heap.read(record));
    links.push_back(read_hdf5_link(message));
    if (links.back().name.empty()) return bad_links("a group has a damaged link");
  }
  return links;
}

}  // namespace serin::formats::keras
