// npz.cc: an .npz file is a zip archive of .npy files, stored as they are.
//
// Read from the back, as every zip reader should: end record -> central directory -> one local header for each member -> its bytes. Every
// offset and length is checked against the file, in 64 bits, before it is used.

#include "runtime/cli/tools/npz.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "runtime/base/file.h"
#include "runtime/samples/npy.h"

namespace serin::cli {
namespace {

constexpr size_t kFileBytes = size_t{4} << 30;
constexpr size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;  // of the fixed parts

Error corrupt(std::string_view what) { return Error{Code::kCorrupt, fmt::format("not an .npz file: {}", what)}; }

template <class T>
T little_endian(std::string_view bytes, size_t at) {  // requires at + sizeof(T) <= bytes.size()
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Member {
  std::string name;
  uint16_t method;
  uint32_t size, local_header;
};

/// The members that the central directory lists, or nothing where it is not one.
std::optional<std::vector<Member>> central_directory(std::string_view bytes) {
  const size_t end = bytes.rfind("PK\x05\x06");
  if (end == std::string_view::npos || bytes.size() - end < kEndBytes) return std::nullopt;
  const auto count = little_endian<uint16_t>(bytes, end + 10);
  size_t at = little_endian<uint32_t>(bytes, end + 16);
  std::vector<Member> members;
  for (size_t i = 0; i < count; ++i) {
    if (at > end || end - at < kEntryBytes || bytes.substr(at, 4) != "PK\x01\x02") return std::nullopt;
    const size_t name = little_endian<uint16_t>(bytes, at + 28);
    const size_t skipped = size_t{little_endian<uint16_t>(bytes, at + 30)} + little_endian<uint16_t>(bytes, at + 32);
    if (end - at - kEntryBytes < name + skipped) return std::nullopt;
    members.push_back({std::string(bytes.substr(at + kEntryBytes, name)), little_endian<uint16_t>(bytes, at + 10),
                       little_endian<uint32_t>(bytes, at + 24), little_endian<uint32_t>(bytes, at + 42)});
    at += kEntryBytes + name + skipped;
  }
  return members;
}

std::optional<std::string_view> stored_bytes(std::string_view bytes, const Member& member) {
  const size_t at = member.local_header;
  if (at > bytes.size() || bytes.size() - at < kLocalBytes || bytes.substr(at, 4) != "PK\x03\x04") return std::nullopt;
  const size_t begin = at + kLocalBytes + little_endian<uint16_t>(bytes, at + 26) + little_endian<uint16_t>(bytes, at + 28);
  if (begin > bytes.size() || bytes.size() - begin < member.size) return std::nullopt;
  return bytes.substr(begin, member.size);
}

}  // namespace

Result<std::map<std::string, graph::ConstantPtr>> read_npz(std::string_view bytes) {
  const auto members = central_directory(bytes);
  if (!members) return corrupt("its zip directory is missing or damaged");
  std::map<std::string, graph::ConstantPtr> arrays;
  for (const Member& member : *members) {
    if (!member.name.ends_with(".npy")) continue;
    if (member.method != 0) {
      return Error{Code::kUnsupported, fmt::format(".npz: member '{}' is compressed; write it with numpy.savez", member.name)};
    }
    const auto stored = stored_bytes(bytes, member);
    if (!stored) return corrupt(fmt::format("member '{}' is outside the file", member.name));
    auto array = samples::read_npy(*stored);
    if (!array) return array.error().in(fmt::format("member '{}'", member.name));
    arrays[member.name.substr(0, member.name.size() - 4)] = std::move(*array);
  }
  if (arrays.empty()) return corrupt("it contains no .npy members");
  return arrays;
}

Result<std::map<std::string, graph::ConstantPtr>> read_npz_file(const std::string& path) {
  SERIN_TRY(const std::string bytes, read_file(path, kFileBytes));
  auto arrays = read_npz(bytes);
  if (!arrays) return arrays.error().in(path);
  return arrays;
}

}  // namespace serin::cli
