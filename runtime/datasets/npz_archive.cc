// npz_archive.cc: an .npz file is a zip archive of .npy files, stored as they are or deflated. It is read from the back: end record, central directory,
// one local header for each member. numpy.savez writes the records of zip64, where 32 bits of all ones refer to an extra field.

#include "runtime/datasets/npz_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/datasets/npz_inflate.h"
#include "runtime/samples/npy.h"

namespace serin::datasets {
namespace {

constexpr size_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56, kEntryBytes = 46, kLocalBytes = 30;  // of the fixed parts
constexpr size_t kMostComment = 65'535, kMostDirectory = size_t{64} << 20;
constexpr uint32_t kIn64 = 0xFFFF'FFFF;

Error corrupt_archive(const StoredFile& file, std::string_view what) {
  return Error{Code::kCorrupt, fmt::format("{}: not an .npz file: {}", file.path(), what)};
}

template <class T>
T number_at(std::string_view bytes, size_t at) {  // requires at + sizeof(T) <= bytes.size()
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Entry {
  std::string name;
  uint16_t method;
  uint32_t crc;
  uint64_t size, compressed, local;
};

/// Replaces the numbers that are in the extra field of zip64.
bool widen(std::string_view extra, Entry& entry) {
  while (extra.size() >= 4) {
    const auto id = number_at<uint16_t>(extra, 0);
    const size_t bytes = number_at<uint16_t>(extra, 2);
    if (extra.size() - 4 < bytes) return false;
    if (id == 1) {
      std::string_view field = extra.substr(4, bytes);
      for (uint64_t* const number : {&entry.size, &entry.compressed, &entry.local}) {
        if (*number != kIn64) continue;
        if (field.size() < 8) return false;
        *number = number_at<uint64_t>(field, 0);
        field.remove_prefix(8);
      }
      return true;
    }
    extra.remove_prefix(4 + bytes);
  }
  return entry.size != kIn64 && entry.compressed != kIn64 && entry.local != kIn64;
}

struct Directory {
  uint64_t offset, bytes, count;
};

Result<Directory> find_directory(const StoredFile& file) {
  const size_t tail_bytes = std::min<uint64_t>(file.size(), kEndBytes + kMostComment);
  SERIN_TRY(const std::string tail, file.read(file.size() - tail_bytes, tail_bytes));
  const size_t end = tail.rfind("PK\x05\x06");
  if (end == std::string::npos || tail.size() - end < kEndBytes) return corrupt_archive(file, "its zip directory is missing");
  Directory found{number_at<uint32_t>(tail, end + 16), number_at<uint32_t>(tail, end + 12), number_at<uint16_t>(tail, end + 10)};
  if (found.offset == kIn64 || found.bytes == kIn64 || found.count == 0xFFFF) {
    if (end < kLocatorBytes || tail.compare(end - kLocatorBytes, 4, "PK\x06\x07") != 0) return corrupt_archive(file, "no zip64 locator");
    const auto at = number_at<uint64_t>(tail, end - kLocatorBytes + 8);
    if (at > file.size() || file.size() - at < kEnd64Bytes) return corrupt_archive(file, "its zip64 record is outside the file");
    SERIN_TRY(const std::string record, file.read(at, kEnd64Bytes));
    if (!record.starts_with("PK\x06\x06")) return corrupt_archive(file, "its zip64 record is missing");
    found = {number_at<uint64_t>(record, 48), number_at<uint64_t>(record, 40), number_at<uint64_t>(record, 32)};
  }
  if (found.bytes > kMostDirectory || found.offset > file.size() || file.size() - found.offset < found.bytes)
    return corrupt_archive(file, "its zip directory is outside the file");
  return found;
}

Result<std::vector<Entry>> read_directory(const StoredFile& file) {
  SERIN_TRY(const Directory directory, find_directory(file));
  SERIN_TRY(const std::string text, file.read(directory.offset, directory.bytes));
  std::string_view bytes = text;
  std::vector<Entry> entries;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (bytes.size() < kEntryBytes || !bytes.starts_with("PK\x01\x02")) return corrupt_archive(file, "its zip directory is damaged");
    const size_t name = number_at<uint16_t>(bytes, 28), extra = number_at<uint16_t>(bytes, 30), comment = number_at<uint16_t>(bytes, 32);
    if (bytes.size() - kEntryBytes < name + extra + comment) return corrupt_archive(file, "its zip directory is damaged");
    Entry entry{std::string(bytes.substr(kEntryBytes, name)),
                number_at<uint16_t>(bytes, 10),
                number_at<uint32_t>(bytes, 16),
                number_at<uint32_t>(bytes, 24),
                number_at<uint32_t>(bytes, 20),
                number_at<uint32_t>(bytes, 42)};
    if (!widen(bytes.substr(kEntryBytes + name, extra), entry))
      return corrupt_archive(file, fmt::format("the sizes of member '{}' are missing", entry.name));
    entries.push_back(std::move(entry));
    bytes.remove_prefix(kEntryBytes + name + extra + comment);
  }
  return entries;
}

/// The file that has the contents of a member, and where they begin.
struct Contents {
  std::shared_ptr<const StoredFile> file;
  uint64_t begin;
};

Result<Contents> contents_of(const std::shared_ptr<const StoredFile>& archive, const Entry& entry) {
  constexpr uint16_t kStored = 0, kDeflated = 8;
  const StoredFile& file = *archive;
  const auto outside = [&] { return corrupt_archive(file, fmt::format("member '{}' is outside the file", entry.name)); };
  if (entry.method != kStored && entry.method != kDeflated)
    return Error{Code::kUnsupported,
                 fmt::format("{}: member '{}' is compressed with method {}; write it with numpy.savez or savez_compressed", file.path(),
                             entry.name, entry.method)};
  if (entry.local > file.size() || file.size() - entry.local < kLocalBytes) return outside();
  SERIN_TRY(const std::string local, file.read(entry.local, kLocalBytes));
  if (!local.starts_with("PK\x03\x04")) return outside();
  const uint64_t begin = entry.local + kLocalBytes + number_at<uint16_t>(local, 26) + number_at<uint16_t>(local, 28);
  if (begin > file.size() || file.size() - begin < (entry.method == kStored ? entry.size : entry.compressed)) return outside();
  if (entry.method == kStored) return Contents{archive, begin};
  SERIN_TRY(auto inflated, inflate_member(file, {entry.name, begin, entry.compressed, entry.size, entry.crc}));
  return Contents{std::move(inflated), 0};
}

Result<NpzArray> array_of(const std::shared_ptr<const StoredFile>& archive, const Entry& entry) {
  SERIN_TRY(const Contents contents, contents_of(archive, entry));
  SERIN_TRY(const std::string head, contents.file->read(contents.begin, std::min<uint64_t>(entry.size, samples::kMostNpyHeader)));
  const auto header = samples::read_npy_header(head);
  if (!header) return header.error().in(fmt::format("{}: member '{}'", archive->path(), entry.name));
  const auto count = header->shape.checked_elements();
  uint64_t needed = 0;
  if (!count || __builtin_mul_overflow(static_cast<uint64_t>(*count), dtype_size(header->dtype), &needed) ||
      needed != entry.size - header->bytes)
    return corrupt_archive(*archive, fmt::format("member '{}': shape {} of {} does not go with {} bytes", entry.name, header->shape.str(),
                                                 dtype_name(header->dtype), entry.size - header->bytes));
  return NpzArray{entry.name.substr(0, entry.name.size() - 4), header->dtype, header->shape, contents.begin + header->bytes, contents.file};
}

}  // namespace

Result<std::vector<NpzArray>> find_npz_arrays(const std::shared_ptr<const StoredFile>& file) {
  SERIN_TRY(const std::vector<Entry> entries, read_directory(*file));
  std::vector<NpzArray> arrays;
  for (const Entry& entry : entries) {
    if (!entry.name.ends_with(".npy")) continue;
    SERIN_TRY(NpzArray array, array_of(file, entry));
    arrays.push_back(std::move(array));
  }
  if (arrays.empty()) return corrupt_archive(*file, "it contains no .npy members");
  return arrays;
}

}  // namespace serin::datasets
