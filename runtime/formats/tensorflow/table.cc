// table.cc: the table format of LevelDB.
//
//   file    data blocks, other blocks, index block, footer
//   footer  handle of the metaindex, handle of the index, zeros up to 40 bytes; then the magic number
//   handle  varint offset, varint size
//   block   entries, restart points (u32 each), their number (u32); behind it a byte of compression and a masked CRC32C
//   entry   varint shared, varint unshared, varint length; the end of the key, the value
//
// A key is the first `shared` bytes of the key before it, then the stored end. Values of the index block are handles of data blocks.

#include "runtime/formats/tensorflow/table.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <string>

#include "runtime/formats/tensorflow/crc32c.h"

namespace serin::formats::tf {
namespace {

using wire::Bytes;

constexpr size_t kFooter = 48, kTrailer = 5;
constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;

Error damaged(std::string_view what) { return Error{Code::kCorrupt, fmt::format("not a table of TensorFlow, or a damaged one: {}", what)}; }

uint32_t fixed32(const std::byte* at) {
  uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::optional<uint64_t> take_varint(Bytes& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 63 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint64_t>(bytes[0]);
    bytes = bytes.subspan(1);
    value |= (byte & 127) << shift;
    if (byte < 128) return value;
  }
  return std::nullopt;
}

Result<Bytes> take_block(Bytes file, Bytes& handle) {
  const auto offset = take_varint(handle), size = take_varint(handle);
  if (!offset || !size) return damaged("a handle ends too early");
  if (*offset > file.size() || *size > file.size() - *offset || file.size() - *offset - *size < kTrailer)
    return damaged(fmt::format("a block of {} bytes at {} of {}", *size, *offset, file.size()));
  const Bytes block = file.subspan(*offset, *size + kTrailer);
  if (block[*size] != std::byte{0}) return Error{Code::kUnsupported, "a compressed table, which is not read"};
  if (masked_crc32c(block.first(*size + 1)) != fixed32(&block[*size + 1]))
    return damaged(fmt::format("the checksum of the block at {}", *offset));
  return block.first(*size);
}

template <class Take>
Status each_entry(Bytes block, Take&& take) {
  if (block.size() < 4) return damaged("a block without restart points");
  const uint64_t restarts = fixed32(&block[block.size() - 4]);
  if (restarts * 4 > block.size() - 4) return damaged("too many restart points");
  Bytes left = block.first(block.size() - 4 - restarts * 4);
  std::string key;
  while (!left.empty()) {
    const auto shared = take_varint(left), unshared = take_varint(left), length = take_varint(left);
    if (!shared || !unshared || !length || *shared > key.size() || *unshared > left.size() || *length > left.size() - *unshared)
      return damaged("an entry that is longer than its block");
    key.resize(*shared);
    key.append(reinterpret_cast<const char*>(left.data()), *unshared);
    SERIN_CHECK(take(std::string_view(key), left.subspan(*unshared, *length)));
    left = left.subspan(*unshared + *length);
  }
  return {};
}

}  // namespace

Status read_table(Bytes file, const std::function<Status(std::string_view, Bytes)>& take) {
  if (file.size() < kFooter) return damaged(fmt::format("it has {} bytes", file.size()));
  Bytes footer = file.last(kFooter);
  uint64_t magic = 0;
  std::memcpy(&magic, &footer[kFooter - sizeof magic], sizeof magic);
  if (magic != kTableMagic) return damaged("the magic number at its end is missing");
  footer = footer.first(kFooter - sizeof magic);
  if (!take_varint(footer) || !take_varint(footer)) return damaged("the footer");
  SERIN_TRY(const Bytes index, take_block(file, footer));
  std::string last;
  bool first = true;
  return each_entry(index, [&](std::string_view, Bytes handle) -> Status {
    SERIN_TRY(const Bytes block, take_block(file, handle));
    return each_entry(block, [&](std::string_view key, Bytes value) -> Status {
      if (!first && key <= last) return damaged(fmt::format("key '{}' is out of order", key));
      first = false;
      last = key;
      return take(key, value);
    });
  });
}

}  // namespace serin::formats::tf
