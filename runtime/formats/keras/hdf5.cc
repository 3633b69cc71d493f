// hdf5.cc: walks the groups of an HDF5 file once, and notes where each tensor lies.
//
// An object is a header of messages: a group has its links in them, or says where they are; a tensor has a type, a shape and a place. Damage to names makes a file
// unreadable, damage to one tensor only that tensor. Format: "HDF5 File Format Specification Version 3.0".
//
// libhdf5 is not used: it reads files of friends. Its parser has had dozens of memory errors for damaged files, and it would copy each weight into memory, where
// here a weight stays in the file.

#include "runtime/formats/keras/hdf5.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/utf8.h"
#include "runtime/formats/keras/hdf5_bytes.h"

namespace serin::formats::keras {
namespace {

constexpr size_t kMostObjects = 1'000'000, kMostChunks = 4096, kMostPath = 4096;
constexpr uint64_t kMostHeader = 16 << 20, kMostReads = 8;
constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";

enum Message : uint64_t {
  kDataspace = 1,
  kLinkInfo = 2,
  kDatatype = 3,
  kLink = 6,
  kLayout = 8,
  kFilters = 11,
  kContinuation = 16,
  kSymbolTable = 17
};

Error bad_file(std::string_view problem) { return {Code::kCorrupt, fmt::format("HDF5: {}", problem)}; }

/// What the messages of an object say.
struct Object {
  std::vector<Hdf5Link> links;
  uint64_t tree = kNoAddress, heap = kNoAddress;              ///< of a symbol table
  uint64_t dense_heap = kNoAddress, dense_tree = kNoAddress;  ///< of many links
  bool group = false, has_shape = false, has_type = false, has_place = false;
  Hdf5::Tensor tensor;
  uint64_t address = kNoAddress, bytes = 0;  ///< of the elements
};

/// Types of weights. An opaque type of two bytes is how h5py stores a bfloat16 that it does not know.
DType dtype_of(Hdf5Fields& in) {
  const uint64_t kind = in.number(1) & 15, bits = in.number(3), size = in.number(4);
  if (kind == 5) return size == 2 ? DType::kBFloat16 : DType::kUndefined;
  in.skip(4);
  if (in.overrun() || (bits & 1) != 0) return DType::kUndefined;  // big-endian
  if (kind == 0) {
    const bool with_sign = (bits & 8) != 0;
    switch (size) {
      case 1: return with_sign ? DType::kInt8 : DType::kUInt8;
      case 2: return with_sign ? DType::kInt16 : DType::kUInt16;
      case 4: return with_sign ? DType::kInt32 : DType::kUInt32;
      case 8: return with_sign ? DType::kInt64 : DType::kUInt64;
      default: return DType::kUndefined;
    }
  }
  if (kind != 1) return DType::kUndefined;
  in.skip(1);
  const uint64_t exponent = in.number(1);
  if (size == 8 && exponent == 11) return DType::kFloat64;
  if (size == 4 && exponent == 8) return DType::kFloat32;
  if (size == 2) return exponent == 5 ? DType::kFloat16 : exponent == 8 ? DType::kBFloat16 : DType::kUndefined;
  return DType::kUndefined;
}

bool read_shape(Hdf5Fields& in, Shape& shape) {
  const uint64_t version = in.number(1), rank = in.number(1);
  in.skip(1);
  const uint64_t kind = in.number(1);
  if (version == 1) in.skip(4);
  if (version < 1 || version > 2 || rank > Shape::kMaxRank || (version == 2 && kind == 2)) return false;
  int64_t elements = 1;
  for (uint64_t axis = 0; axis < rank; ++axis) {
    const uint64_t size = in.number(8);
    if (size > (uint64_t{1} << 48) || (size > 0 && elements > (int64_t{1} << 48) / static_cast<int64_t>(size))) return false;
    elements *= std::max<int64_t>(static_cast<int64_t>(size), 1);
    shape.push_back(static_cast<int64_t>(size));
  }
  return !in.overrun();
}

/// Where the elements lie, if they lie together. `here`: where the message's data begin in the file; kNoAddress if that is not known.
void read_place(Hdf5Fields& in, uint64_t here, Object& object) {
  const uint64_t version = in.number(1), kind = in.number(1);
  if (version < 3 || version > 4) {
    object.tensor.problem = fmt::format("is laid out as HDF5 before 1.6 did (version {})", version);
  } else if (kind == 0) {
    object.bytes = in.number(2);
    object.address = here == kNoAddress ? kNoAddress : here + 4;
  } else if (kind == 1) {
    object.address = in.address();
    object.bytes = in.number(8);
  } else {
    object.tensor.problem = "is stored in chunks; Keras stores weights in one piece";
  }
}

class Walk {
 public:
  explicit Walk(Hdf5Source& source) : source_(source) {}

  Status run(std::map<std::string, Hdf5::Tensor, std::less<>>& tensors) {
    SERIN_TRY(const uint64_t root, root_address());
    std::vector<std::pair<std::string, uint64_t>> open = {{"", root}};
    std::set<uint64_t> seen = {root};
    while (!open.empty()) {
      auto [path, address] = std::move(open.back());
      open.pop_back();
      auto object = read_object(address);
      if (!object) return object.error().in(path.empty() ? "/" : path);
      if (!object->group) {
        tensors.emplace(path, finished(std::move(*object)));
        continue;
      }
      auto links = links_of(*object);
      if (!links) return links.error().in(path.empty() ? "/" : path);
      for (const Hdf5Link& link : *links) {
        const std::string below = path.empty() ? link.name : fmt::format("{}/{}", path, link.name);
        if (link.name.empty() || link.name.find('/') != std::string::npos || !is_utf8(link.name) || below.size() > kMostPath)
          return bad_file("a link has no name");
        if (link.address == kNoAddress) continue;  // a soft or external link
        if (!seen.insert(link.address).second) return bad_file(fmt::format("'{}' is another name of an object", below));
        if (seen.size() > kMostObjects) return Error{Code::kTooLarge, fmt::format("HDF5: more than {} objects", kMostObjects)};
        open.emplace_back(below, link.address);
      }
    }
    return {};
  }

 private:
  Result<uint64_t> root_address() {
    SERIN_TRY(Hdf5Fields in, source_.read(0, std::min<size_t>(source_.size(), 96)));
    if (!in.sign(kSignature)) return bad_file("no HDF5 file: it does not begin as one");
    const uint64_t version = in.number(1);
    if (version >= 2 && version <= 3) {
      const uint64_t offsets = in.number(1), lengths = in.number(1);
      in.skip(1);
      if (offsets != 8 || lengths != 8 || in.address() != 0)
        return Error{Code::kUnsupported, "HDF5: addresses that are not of 8 bytes, or a user block"};
      in.skip(16);
      return in.address();
    }
    if (version > 1) return Error{Code::kUnsupported, fmt::format("HDF5: superblock of version {}", version)};
    in.skip(4);
    const uint64_t offsets = in.number(1), lengths = in.number(1);
    in.skip(1 + 2 + 2 + 4 + (version == 1 ? 4 : 0));
    if (offsets != 8 || lengths != 8 || in.address() != 0)
      return Error{Code::kUnsupported, "HDF5: addresses that are not of 8 bytes, or a user block"};
    in.skip(24 + 8);
    const uint64_t root = in.address();
    if (in.overrun()) return bad_file("cut off");
    return root;
  }

  Result<Object> read_object(uint64_t address) {
    SERIN_TRY(Hdf5Fields head, source_.read(address, 4));
    Object object;
    if (head.sign("OHDR"))
      SERIN_CHECK(read_new_header(address, object));
    else
      SERIN_CHECK(read_old_header(address, object));
    return object;
  }

  Status read_old_header(uint64_t address, Object& object) {
    SERIN_TRY(Hdf5Fields in, source_.read(address, 16));
    if (in.number(1) != 1) return bad_file("a damaged header");
    in.skip(7);
    const uint64_t size = in.number(4);
    std::vector<std::pair<uint64_t, uint64_t>> chunks = {{address + 16, size}};
    for (size_t i = 0; i < chunks.size(); ++i) {
      const auto [begin, length] = chunks[i];
      if (length > kMostHeader || chunks.size() > kMostChunks) return bad_file("a damaged header");
      SERIN_TRY(Hdf5Fields chunk, source_.read(begin, length));
      while (chunk.left() >= 8) {
        const uint64_t type = chunk.number(2), bytes = chunk.number(2), flags = chunk.number(1);
        chunk.skip(3);
        const uint64_t here = begin + chunk.at();
        Hdf5Fields body = chunk.part(bytes);
        if (chunk.overrun()) return bad_file("a message of a header is cut off");
        SERIN_CHECK(take(type, flags, body, here, object, chunks));
      }
    }
    return {};
  }

  Status read_new_header(uint64_t address, Object& object) {
    SERIN_TRY(Hdf5Fields in, source_.read(address, std::min<uint64_t>(34, source_.size() - std::min<uint64_t>(address, source_.size()))));
    in.skip(4);
    if (in.number(1) != 2) return bad_file("a damaged header");
    const uint64_t flags = in.number(1);
    if ((flags & 32) != 0) in.skip(16);
    if ((flags & 16) != 0) in.skip(4);
    const uint64_t size = in.number(size_t{1} << (flags & 3));
    if (in.overrun()) return bad_file("a header is cut off");
    const size_t extra = (flags & 4) != 0 ? 2 : 0;
    std::vector<std::pair<uint64_t, uint64_t>> chunks = {{address + in.at(), size}};
    for (size_t i = 0; i < chunks.size(); ++i) {
      auto [begin, length] = chunks[i];
      if (length > kMostHeader || chunks.size() > kMostChunks) return bad_file("a damaged header");
      SERIN_TRY(Hdf5Fields chunk, source_.read(begin, length));
      if (i > 0 && !chunk.sign("OCHK")) return bad_file("a damaged header");
      const size_t checksum = i > 0 ? 4 : 0;  // of the first chunk it lies behind the chunk
      while (chunk.left() >= 4 + extra + checksum) {
        const uint64_t type = chunk.number(1), bytes = chunk.number(2), message_flags = chunk.number(1);
        chunk.skip(extra);
        const uint64_t here = begin + chunk.at();
        Hdf5Fields body = chunk.part(bytes);
        if (chunk.overrun()) return bad_file("a message of a header is cut off");
        SERIN_CHECK(take(type, message_flags, body, here, object, chunks));
      }
    }
    return {};
  }

  static Status take(uint64_t type, uint64_t flags, Hdf5Fields& in, uint64_t here, Object& object,
                     std::vector<std::pair<uint64_t, uint64_t>>& chunks) {
    const bool shared = (flags & 2) != 0;
    if (shared && type != kDatatype) return {};
    switch (type) {
      case kDataspace:
        object.has_shape = true;
        if (!read_shape(in, object.tensor.shape)) object.tensor.problem = "has no readable shape";
        break;
      case kDatatype:
        object.has_type = true;
        object.tensor.dtype = shared ? DType::kUndefined : dtype_of(in);
        break;
      case kLayout:
        object.has_place = true;
        read_place(in, here, object);
        break;
      case kFilters: object.tensor.problem = "is compressed; Keras stores weights as they are"; break;
      case kLink:
        object.group = true;
        object.links.push_back(read_hdf5_link(in));
        break;
      case kLinkInfo: {
        object.group = true;
        in.skip(1);
        const uint64_t link_flags = in.number(1);
        if ((link_flags & 1) != 0) in.skip(8);
        object.dense_heap = in.address();
        object.dense_tree = in.address();
        break;
      }
      case kSymbolTable:
        object.group = true;
        object.tree = in.address();
        object.heap = in.address();
        break;
      case kContinuation: {
        const uint64_t address = in.address(), size = in.number(8);
        if (!in.overrun()) chunks.emplace_back(address, size);
        break;
      }
      default: break;
    }
    return in.overrun() ? Status(bad_file("a message of a header is cut off")) : Status();
  }

  Result<std::vector<Hdf5Link>> links_of(Object& object) {
    std::vector<Hdf5Link> links = std::move(object.links);
    if (object.dense_heap != kNoAddress) {
      SERIN_TRY(std::vector<Hdf5Link> more, read_dense_links(source_, object.dense_heap, object.dense_tree));
      links.insert(links.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    }
    if (object.tree != kNoAddress) SERIN_CHECK(add_table(object.tree, object.heap, links));
    return links;
  }

  /// The links of a symbol table: a tree whose leaves list names by their place in a heap of text.
  Status add_table(uint64_t tree, uint64_t heap, std::vector<Hdf5Link>& links) {
    SERIN_TRY(Hdf5Fields head, source_.read(heap, 32));
    if (!head.sign("HEAP")) return bad_file("a group has no names");
    head.skip(4);
    const uint64_t size = head.number(8);
    head.skip(8);
    SERIN_TRY(Hdf5Fields text, source_.read(head.address(), size));
    const std::string names = text.text(size);
    std::vector<std::pair<uint64_t, int>> open = {{tree, INT32_MAX}};
    while (!open.empty()) {
      const auto [address, above] = open.back();
      open.pop_back();
      SERIN_TRY(Hdf5Fields node, source_.read(address, 24));
      if (!node.sign("TREE") || node.number(1) != 0) return bad_file("a group has a damaged tree");
      const auto level = static_cast<int>(node.number(1));
      const uint64_t used = node.number(2);
      if (level >= above) return bad_file("a tree of a group has no end");
      SERIN_TRY(Hdf5Fields body, source_.read(address + 24, used * 16 + 8));
      for (uint64_t i = 0; i < used; ++i) {
        body.skip(8);
        const uint64_t child = body.address();
        if (level > 0)
          open.emplace_back(child, level);
        else
          SERIN_CHECK(add_leaf(child, names, links));
      }
    }
    return {};
  }

  Status add_leaf(uint64_t address, const std::string& names, std::vector<Hdf5Link>& links) {
    SERIN_TRY(Hdf5Fields head, source_.read(address, 8));
    if (!head.sign("SNOD")) return bad_file("a group has a damaged list of links");
    head.skip(2);
    const uint64_t count = head.number(2);
    if (links.size() + count > kMostObjects) return Error{Code::kTooLarge, fmt::format("HDF5: more than {} objects", kMostObjects)};
    SERIN_TRY(Hdf5Fields body, source_.read(address + 8, count * 40));
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t name = body.number(8), object = body.address(), cached = body.number(4);
      body.skip(20);
      const size_t end = name < names.size() ? names.find('\0', name) : std::string::npos;
      if (end == std::string::npos) return bad_file("a name lies outside of its group");
      links.push_back({names.substr(name, end - name), cached == 2 ? kNoAddress : object});
    }
    return {};
  }

  /// Checked against the file.
  Hdf5::Tensor finished(Object object) const {
    Hdf5::Tensor tensor = std::move(object.tensor);
    if (!tensor.problem.empty()) return tensor;
    if (!object.has_shape || !object.has_type || !object.has_place) {
      tensor.problem = "is no tensor";
      return tensor;
    }
    if (tensor.dtype == DType::kUndefined) {
      tensor.problem = "has a type that is no number of a little-endian machine";
      return tensor;
    }
    const size_t needed = static_cast<size_t>(tensor.shape.elements()) * dtype_size(tensor.dtype);
    if (needed > 0 && (object.address == kNoAddress || object.bytes < needed))
      tensor.problem = fmt::format("needs {} bytes, {} are stored", needed, object.address == kNoAddress ? 0 : object.bytes);
    else if (needed > 0 && (object.address > source_.size() || needed > source_.size() - object.address))
      tensor.problem = "lies outside of the file, which is cut off";
    else
      tensor.offset = needed > 0 ? source_.begin() + object.address : 0;
    return tensor;
  }

  Hdf5Source& source_;
};

}  // namespace

Result<Hdf5Fields> Hdf5Source::read(uint64_t address, uint64_t size) {
  if (address > size_ || size > size_ - address)
    return bad_file(fmt::format("{} bytes at {} lie outside of the file, which is damaged or cut off", size, address));
  read_ += size;
  if (read_ > kMostReads * size_ + (1 << 20)) return Error{Code::kTooLarge, "HDF5: its parts refer to each other without end"};
  std::vector<uint8_t> bytes(size);
  SERIN_CHECK(FileWindow({window_.file, window_.offset + address}).read(std::as_writable_bytes(std::span(bytes))));
  return Hdf5Fields(std::move(bytes));
}

Result<Hdf5> Hdf5::open(FileWindow window, size_t size) {
  Hdf5 file;
  file.window_ = window;
  Hdf5Source source(std::move(window), size);
  SERIN_CHECK(Walk(source).run(file.tensors_));
  return file;
}

const Hdf5::Tensor* Hdf5::find(std::string_view path) const {
  const auto found = tensors_.find(path);
  return found == tensors_.end() ? nullptr : &found->second;
}

bool Hdf5::has_below(std::string_view folder) const {
  const auto next = tensors_.lower_bound(folder);
  return next != tensors_.end() && next->first.starts_with(folder);
}

Result<graph::ConstantPtr> Hdf5::constant(std::string_view path) const {
  const Tensor* const tensor = find(path);
  if (!tensor) return Error{Code::kCorrupt, fmt::format("weight '{}' is missing", path)};
  if (!tensor->problem.empty()) return Error{Code::kCorrupt, fmt::format("weight '{}' {}", path, tensor->problem)};
  const FileWindow window{window_.file, tensor->offset};
  return graph::make_constant(tensor->dtype, tensor->shape, [window](std::span<std::byte> to) { return window.read(to); });
}

}  // namespace serin::formats::keras
