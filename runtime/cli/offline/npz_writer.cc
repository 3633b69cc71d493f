// npz_writer.cc: a zip archive of stored members, each with the records of zip64, as numpy.savez writes it. The CRC of a member is known at
// its end, so its header is patched then.

#include "runtime/cli/offline/npz_writer.h"

#include <fmt/format.h>
#include <zlib.h>

namespace serin::cli {
namespace {

constexpr uint64_t kLocalHead = 30, kLocalExtra = 20;
constexpr uint16_t kVersion = 45;                    // of zip64
constexpr uint16_t kDate = (0 << 9) | (1 << 5) | 1;  // 1980-01-01

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string npy_header(std::string_view descr, const Shape& shape) {
  std::string dims;
  for (const int64_t dim : shape) dims += fmt::format("{}, ", dim);
  if (shape.rank() > 1)
    dims.resize(dims.size() - 2);
  else if (shape.rank() == 1)
    dims.pop_back();
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims);
  constexpr size_t kBefore = 10, kAlignment = 64;
  text.append(kAlignment - (kBefore + text.size() + 1) % kAlignment, ' ') += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  append(header, static_cast<uint16_t>(text.size()));
  return header + text;
}

}  // namespace

std::optional<std::string_view> npz_descr(DType dtype) {
  switch (dtype) {
    case DType::kBool: return "|b1";
    case DType::kInt8: return "|i1";
    case DType::kInt16: return "<i2";
    case DType::kInt32: return "<i4";
    case DType::kInt64: return "<i8";
    case DType::kUInt8: return "|u1";
    case DType::kUInt16: return "<u2";
    case DType::kUInt32: return "<u4";
    case DType::kUInt64: return "<u8";
    case DType::kFloat16: return "<f2";
    case DType::kFloat32: return "<f4";
    case DType::kFloat64: return "<f8";
    default: return std::nullopt;
  }
}

Result<NpzWriter> NpzWriter::create(const std::string& path) {
  SERIN_TRY(auto out, OutputStream::create(path));
  return NpzWriter(std::move(out));
}

Status NpzWriter::begin(const std::string& name, DType dtype, const Shape& shape) {
  SERIN_CHECK(end_member());
  Member& member = members_.emplace_back(Member{name + ".npy", out_.size()});
  std::string head = "PK\x03\x04";
  append(head, kVersion);
  append(head, uint16_t{0});  // flags
  append(head, uint16_t{0});  // stored
  append(head, uint16_t{0});  // time
  append(head, kDate);
  append(head, uint32_t{0});  // CRC, patched
  append(head, UINT32_MAX);
  append(head, UINT32_MAX);
  append(head, static_cast<uint16_t>(member.name.size()));
  append(head, static_cast<uint16_t>(kLocalExtra));
  head += member.name;
  append(head, uint16_t{1});
  append(head, uint16_t{16});
  append(head, uint64_t{0});  // sizes, patched
  append(head, uint64_t{0});
  SERIN_CHECK(out_.write(head));
  return write(npy_header(*npz_descr(dtype), shape));
}

Status NpzWriter::write(std::string_view bytes) {
  Member& member = members_.back();
  member.crc = static_cast<uint32_t>(::crc32_z(member.crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  member.bytes += bytes.size();
  return out_.write(bytes);
}

Status NpzWriter::end_member() {
  if (members_.empty()) return {};
  const Member& member = members_.back();
  std::string crc, sizes;
  append(crc, member.crc);
  append(sizes, member.bytes);
  append(sizes, member.bytes);
  SERIN_CHECK(out_.patch(member.offset + 14, crc));
  return out_.patch(member.offset + kLocalHead + member.name.size() + 4, sizes);
}

Status NpzWriter::finish() {
  SERIN_CHECK(end_member());
  const uint64_t directory = out_.size();
  std::string text;
  for (const Member& member : members_) {
    text += "PK\x01\x02";
    append(text, kVersion);
    append(text, kVersion);
    append(text, uint16_t{0});
    append(text, uint16_t{0});
    append(text, uint16_t{0});
    append(text, kDate);
    append(text, member.crc);
    append(text, UINT32_MAX);
    append(text, UINT32_MAX);
    append(text, static_cast<uint16_t>(member.name.size()));
    append(text, uint16_t{28});  // the extra field of zip64
    append(text, uint16_t{0});
    append(text, uint16_t{0});
    append(text, uint16_t{0});
    append(text, uint32_t{0});
    append(text, UINT32_MAX);
    text += member.name;
    append(text, uint16_t{1});
    append(text, uint16_t{24});
    append(text, member.bytes);
    append(text, member.bytes);
    append(text, member.offset);
  }
  const uint64_t bytes = text.size(), count = members_.size();
  text += "PK\x06\x06";
  append(text, uint64_t{44});
  append(text, kVersion);
  append(text, kVersion);
  append(text, uint32_t{0});
  append(text, uint32_t{0});
  append(text, count);
  append(text, count);
  append(text, bytes);
  append(text, directory);
  text += "PK\x06\x07";
  append(text, uint32_t{0});
  append(text, directory + bytes);
  append(text, uint32_t{1});
  text += "PK\x05\x06";
  append(text, uint32_t{0});
  append(text, static_cast<uint16_t>(std::min<uint64_t>(count, UINT16_MAX)));
  append(text, static_cast<uint16_t>(std::min<uint64_t>(count, UINT16_MAX)));
  append(text, UINT32_MAX);
  append(text, UINT32_MAX);
  append(text, uint16_t{0});
  SERIN_CHECK(out_.write(text));
  return out_.finish();
}

}  // namespace serin::cli
