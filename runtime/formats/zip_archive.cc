// zip_archive.cc: reads the directory at the end of a zip archive, in its 64-bit form too, and checks it against the headers of the entries.

#include "runtime/formats/zip_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/utf8.h"

namespace serin::formats {
namespace {

constexpr size_t kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20, kDirectoryRow = 46, kLocalSize = 30;
constexpr uint64_t kEndRecord = 0x06054b50, kEnd64 = 0x06064b50, kLocator = 0x07064b50, kRow = 0x02014b50, kLocal = 0x04034b50;
constexpr size_t kDirectoryLimit = size_t{256} << 20;
constexpr uint64_t kEncrypted = 1, kStored = 0, kUnixLink = 0120000;

/// Little-endian fields of a part of the file.
class Fields {
 public:
  static Result<Fields> read(const InputFile& file, size_t offset, size_t size) {
    Fields fields(size);
    SERIN_CHECK(file.read(offset, std::as_writable_bytes(std::span(fields.bytes_))));
    return fields;
  }

  size_t size() const { return bytes_.size(); }
  uint64_t at(size_t offset, size_t width) const {
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i) value |= uint64_t{bytes_[offset + i]} << (8 * i);
    return value;
  }
  std::string_view text(size_t offset, size_t size) const { return {reinterpret_cast<const char*>(bytes_.data()) + offset, size}; }

 private:
  explicit Fields(size_t size) : bytes_(size) {}

  std::vector<uint8_t> bytes_;
};

struct Directory {
  uint64_t offset = 0, size = 0, entries = 0;
};

Error bad_archive(std::string_view problem) { return {Code::kCorrupt, fmt::format("zip archive: {}", problem)}; }

Result<Directory> find_directory(const InputFile& file) {
  if (file.size() < kEndSize) return bad_archive("too short");
  const size_t tail = std::min<size_t>(file.size(), kEndSize + 0xFFFF);
  SERIN_TRY(const Fields end, Fields::read(file, file.size() - tail, tail));
  std::optional<size_t> found;
  for (size_t at = tail - kEndSize + 1; at-- > 0 && !found;)
    if (end.at(at, 4) == kEndRecord && end.at(at + 20, 2) == tail - at - kEndSize) found = at;
  if (!found) return bad_archive("no directory at the end; the file is cut off, or no zip archive");
  const size_t at = *found, position = file.size() - tail + at;
  Directory directory{end.at(at + 16, 4), end.at(at + 12, 4), end.at(at + 10, 2)};
  if (end.at(at + 4, 2) != 0 || end.at(at + 6, 2) != 0 || end.at(at + 8, 2) != directory.entries)
    return Error{Code::kUnsupported, "zip archive in several parts"};
  bool is64 = directory.offset == 0xFFFFFFFF || directory.size == 0xFFFFFFFF || directory.entries == 0xFFFF;
  size_t limit = position;
  if (!is64 && position >= kLocatorSize) {
    SERIN_TRY(const Fields mark, Fields::read(file, position - kLocatorSize, 4));
    is64 = mark.at(0, 4) == kLocator;
  }
  if (is64) {
    if (position < kLocatorSize + kEnd64Size) return bad_archive("no 64-bit directory");
    SERIN_TRY(const Fields locator, Fields::read(file, position - kLocatorSize, kLocatorSize));
    const uint64_t offset = locator.at(8, 8);
    if (locator.at(0, 4) != kLocator || offset > position - kLocatorSize - kEnd64Size) return bad_archive("no 64-bit directory");
    SERIN_TRY(const Fields end64, Fields::read(file, offset, kEnd64Size));
    if (end64.at(0, 4) != kEnd64) return bad_archive("no 64-bit directory");
    if (end64.at(16, 4) != 0 || end64.at(20, 4) != 0 || end64.at(24, 8) != end64.at(32, 8))
      return Error{Code::kUnsupported, "zip archive in several parts"};
    directory = {end64.at(48, 8), end64.at(40, 8), end64.at(32, 8)};
    limit = offset;
  }
  if (directory.offset > limit || directory.size > limit - directory.offset) return bad_archive("the directory lies outside the file");
  if (directory.size > kDirectoryLimit || directory.entries > ZipArchive::kEntries || directory.entries > directory.size / kDirectoryRow)
    return bad_archive(fmt::format("{} entries in a directory of {} bytes", directory.entries, directory.size));
  return directory;
}

/// Whether a name stays below the folder into which an archive is unpacked.
bool harmless(std::string_view name) {
  if (name.empty() || name.size() > 4096 || name[0] == '/' || !is_utf8(name)) return false;
  if (name.find_first_of(std::string_view("\\:\0", 3)) != std::string_view::npos) return false;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part == "." || part == ".." || (part.empty() && end != name.size())) return false;
    begin = end + 1;
  }
  return true;
}

struct Row {
  std::string name;
  uint64_t compressed = 0, size = 0, local = 0;
  uint32_t checksum = 0;
};

/// Sizes and the offset of a row whose 32-bit fields are full are in its extra field of kind 1, in this order.
bool widen(const Fields& fields, size_t begin, size_t end, Row& row) {
  std::vector<uint64_t*> wanted;
  for (uint64_t* field : {&row.size, &row.compressed, &row.local})
    if (*field == 0xFFFFFFFF) wanted.push_back(field);
  if (wanted.empty()) return true;
  while (begin + 4 <= end) {
    const uint64_t kind = fields.at(begin, 2), size = fields.at(begin + 2, 2);
    begin += 4;
    if (size > end - begin) return false;
    if (kind == 1) {
      if (size < 8 * wanted.size()) return false;
      for (size_t i = 0; i < wanted.size(); ++i) *wanted[i] = fields.at(begin + 8 * i, 8);
      return true;
    }
    begin += size;
  }
  return false;
}

}  // namespace

Result<ZipArchive> ZipArchive::open(const std::shared_ptr<const InputFile>& file) {
  SERIN_TRY(const Directory directory, find_directory(*file));
  SERIN_TRY(const Fields fields, Fields::read(*file, directory.offset, directory.size));
  ZipArchive archive(file);
  std::vector<std::pair<size_t, size_t>> ranges;
  size_t at = 0;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (fields.size() - at < kDirectoryRow || fields.at(at, 4) != kRow)
      return bad_archive(fmt::format("row {} of the directory is damaged", i));
    const size_t name = fields.at(at + 28, 2), extra = fields.at(at + 30, 2), comment = fields.at(at + 32, 2);
    if (fields.size() - at - kDirectoryRow < name + extra + comment)
      return bad_archive(fmt::format("row {} of the directory is cut off", i));
    Row row{std::string(fields.text(at + kDirectoryRow, name)), fields.at(at + 20, 4), fields.at(at + 24, 4), fields.at(at + 42, 4),
            static_cast<uint32_t>(fields.at(at + 16, 4))};
    const uint64_t flags = fields.at(at + 8, 2), method = fields.at(at + 10, 2), mode = fields.at(at + 40, 2);
    const size_t extra_begin = at + kDirectoryRow + name;
    at = extra_begin + extra + comment;
    if (!harmless(row.name)) return bad_archive(fmt::format("row {} has a name that leads out of the archive", i));
    const auto refuse = [&](std::string_view problem) { return bad_archive(fmt::format("'{}' {}", row.name, problem)); };
    if ((mode & 0170000) == kUnixLink) return refuse("is a link");
    if (flags & kEncrypted) return Error{Code::kUnsupported, fmt::format("zip archive: '{}' is encrypted", row.name)};
    if (method != kStored)
      return Error{Code::kUnsupported, fmt::format("zip archive: '{}' is compressed; torch and Keras store entries as they are", row.name)};
    if (!widen(fields, extra_begin, extra_begin + extra, row)) return refuse("has no 64-bit sizes");
    if (row.compressed != row.size) return refuse("is stored in another size than it has");
    if (row.local > directory.offset || directory.offset - row.local < kLocalSize) return refuse("lies outside the file");
    SERIN_TRY(const Fields local, Fields::read(*file, row.local, kLocalSize));
    if (local.at(0, 4) != kLocal || local.at(8, 2) != kStored || local.at(26, 2) != name)
      return refuse("has a header that contradicts the directory");
    const uint64_t data = row.local + kLocalSize + name + local.at(28, 2);
    if (data > directory.offset || row.size > directory.offset - data) return refuse("lies outside the file");
    SERIN_TRY(const Fields local_name, Fields::read(*file, row.local + kLocalSize, name));
    if (local_name.text(0, name) != row.name) return refuse("has another name in its header");
    ranges.emplace_back(row.local, data + row.size);
    const bool folder = row.name.back() == '/';
    if (folder && row.size != 0) return refuse("is a folder with contents");
    if (!archive.entries_.try_emplace(row.name, ZipEntry{data, row.size, row.checksum}).second) return refuse("occurs twice");
  }
  if (at != fields.size()) return bad_archive("the directory has more bytes than rows");
  std::ranges::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second) return bad_archive("two entries share bytes");
  return archive;
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

Result<std::string> ZipArchive::read(std::string_view name, size_t limit) const {
  const ZipEntry* const entry = find(name);
  if (!entry) return bad_archive(fmt::format("has no '{}'", name));
  if (entry->size > limit) return Error{Code::kTooLarge, fmt::format("'{}' has {} bytes; {} are allowed", name, entry->size, limit)};
  std::string text(entry->size, '\0');
  SERIN_CHECK(file_->read(entry->offset, std::as_writable_bytes(std::span(text))));
  boost::crc_32_type sum;
  sum.process_bytes(text.data(), text.size());
  if (sum.checksum() != entry->checksum) return bad_archive(fmt::format("'{}' does not have its checksum; the file is damaged", name));
  return text;
}

}  // namespace serin::formats
