// bundle.cc: the tensor bundle. The index is a table: the empty key has the header, each other key a BundleEntryProto, which says where in
// which file the tensor's bytes are.

#include "runtime/formats/tensorflow/bundle.h"

#include <fmt/format.h>

#include <bit>

#include "runtime/base/wire.h"
#include "runtime/formats/open_beneath.h"
#include "runtime/formats/tensorflow/crc32c.h"
#include "runtime/formats/tensorflow/proto.h"
#include "runtime/formats/tensorflow/table.h"
#include "runtime/formats/tensorflow/tensor.h"

namespace serin::formats::tf {
namespace {

constexpr size_t kMostIndexBytes = size_t{256} << 20;
constexpr size_t kMostStringBytes = size_t{256} << 20;
constexpr const char* kIndexFile = "variables/variables.index";

Error wrong_checksum() { return {Code::kCorrupt, "the checksum of its bytes is wrong: the file is damaged"}; }

Status check_header(wire::Bytes value, int64_t& shards) {
  wire::Decoding decoding{.begin = value.data(), .error = {}};
  wire::Message in(decoding, "BundleHeaderProto", value);
  int64_t endianness = 0;
  while (in.next()) {
    if (in.field() == 1) shards = in.integer();
    if (in.field() == 2) endianness = in.integer();
  }
  if (decoding.error) return *decoding.error;
  if (endianness != 0) return Error{Code::kUnsupported, "weights of a big-endian machine"};
  if (shards < 1 || shards > 99'999) return Error{Code::kCorrupt, fmt::format("weights in {} files", shards)};
  return {};
}

}  // namespace

Result<Bundle> Bundle::open(const std::string& folder) {
  Bundle bundle;
  bundle.folder_ = folder;
  auto index = open_beneath(folder, kIndexFile, "file");
  if (!index && index.error().code == Code::kNotFound) return bundle;
  if (!index) return index.error();
  SERIN_TRY(const std::vector<std::byte> bytes, index->read_all(kMostIndexBytes));
  const Status read = read_table(bytes, [&bundle](std::string_view key, wire::Bytes value) -> Status {
    return key.empty() ? check_header(value, bundle.shards_) : bundle.take_entry(key, value);
  });
  if (!read) return read.error().in(kIndexFile);
  if (bundle.shards_ == 0) return Error{Code::kCorrupt, fmt::format("{}: has no header", kIndexFile)};
  return bundle;
}

Status Bundle::take_entry(std::string_view name, std::span<const std::byte> value) {
  wire::Decoding decoding{.begin = value.data(), .error = {}};
  wire::Message in(decoding, "BundleEntryProto", value);
  Entry entry;
  while (in.next()) {
    switch (in.field()) {
      case 1: entry.dtype = in.integer(); break;
      case 2: entry.dims = read_shape(in.message("TensorShapeProto")).value_or(std::vector<int64_t>{-1}); break;
      case 3: entry.shard = in.integer(); break;
      case 4: entry.offset = static_cast<uint64_t>(in.integer()); break;
      case 5: entry.size = static_cast<uint64_t>(in.integer()); break;
      case 6: in.each_fixed<float>([&entry](float bits) { entry.crc = std::bit_cast<uint32_t>(bits); }); break;
      case 7: entry.sliced = true; break;
      default: break;
    }
  }
  if (decoding.error) return decoding.error->in(fmt::format("'{}'", name));
  entries_.emplace(name, std::move(entry));
  return {};
}

Result<std::shared_ptr<const InputFile>> Bundle::shard(int64_t number) {
  if (number < 0 || number >= shards_) return Error{Code::kCorrupt, fmt::format("lies in file {} of {}", number, shards_)};
  auto& file = files_[number];
  if (!file) {
    SERIN_TRY(InputFile opened, open_beneath(folder_, fmt::format("variables/variables.data-{:05}-of-{:05}", number, shards_), "file"));
    file = std::make_shared<const InputFile>(std::move(opened));
  }
  return file;
}

Result<graph::ConstantPtr> Bundle::read(std::string_view name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return Error{Code::kNotFound, fmt::format("{} has no tensor '{}'", kIndexFile, name)};
  const Entry& entry = found->second;
  const auto fail = [name](const Error& error) { return error.in(fmt::format("weight '{}'", name)); };
  if (entry.sliced) return fail({Code::kUnsupported, "is stored in slices"});
  const auto dtype = dtype_of(entry.dtype);
  if (!dtype) return fail({Code::kUnsupported, fmt::format("has dtype {}", entry.dtype)});
  const auto shape = static_shape(entry.dims, *dtype);
  if (!shape) return fail(shape.error());
  const auto file = shard(entry.shard);
  if (!file) return fail(file.error());
  if (entry.offset > (*file)->size() || entry.size > (*file)->size() - entry.offset)
    return fail({Code::kCorrupt,
                 fmt::format("needs {} bytes at {} of '{}', which has {}", entry.size, entry.offset, (*file)->path(), (*file)->size())});
  const FileWindow window{*file, entry.offset};
  if (*dtype == DType::kString) {
    auto strings = read_strings(entry, *shape, window);
    return strings ? strings : Result<graph::ConstantPtr>(fail(strings.error()));
  }
  const size_t size = static_cast<size_t>(shape->elements()) * dtype_size(*dtype);
  if (size != entry.size) return fail({Code::kCorrupt, fmt::format("has {} bytes, its shape needs {}", entry.size, size)});
  try {
    return graph::make_constant(*dtype, *shape, [window, crc = entry.crc, name = std::string(name)](std::span<std::byte> bytes) -> Status {
      SERIN_CHECK(window.read(bytes));
      return masked_crc32c(bytes) == crc ? Status() : Status(wrong_checksum().in(fmt::format("weight '{}'", name)));
    });
  } catch (const graph::LostConstant& lost) {
    return lost.error();
  }
}

/// Lengths as varints, a masked checksum of them (as u32 each), the characters.
Result<graph::ConstantPtr> Bundle::read_strings(const Entry& entry, const Shape& shape, const FileWindow& window) {
  if (entry.size > kMostStringBytes) return Error{Code::kTooLarge, fmt::format("has {} bytes of strings", entry.size)};
  std::vector<std::byte> bytes(entry.size);
  SERIN_CHECK(window.read(bytes));
  const auto count = static_cast<size_t>(shape.elements());
  if (count > bytes.size()) return Error{Code::kCorrupt, fmt::format("has {} strings in {} bytes", count, bytes.size())};
  size_t at = 0;
  std::vector<uint64_t> lengths;
  for (size_t i = 0; i < count; ++i) {
    uint64_t length = 0;
    for (int shift = 0;; shift += 7) {
      if (at == bytes.size() || shift > 35) return Error{Code::kCorrupt, "ends within the lengths of its strings"};
      const auto byte = static_cast<uint64_t>(bytes[at++]);
      length |= (byte & 127) << shift;
      if (byte < 128) break;
    }
    lengths.push_back(length);
  }
  if (count > 0 && bytes.size() - at < 4) return Error{Code::kCorrupt, "has no checksum of the lengths of its strings"};
  at += count > 0 ? 4 : 0;
  std::byte* none = nullptr;
  auto constant = graph::make_mutable_constant(DType::kString, shape, &none);
  for (const uint64_t length : lengths) {
    if (length > bytes.size() - at) return Error{Code::kCorrupt, "ends within a string"};
    constant->strings.emplace_back(reinterpret_cast<const char*>(&bytes[0]) + at, length);
    at += length;
  }
  return graph::ConstantPtr(std::move(constant));
}

Status Bundle::unchanged() const {
  for (const auto& [number, file] : files_)
    if (file) SERIN_CHECK(file->unchanged());
  return {};
}

}  // namespace serin::formats::tf
