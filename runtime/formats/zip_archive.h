// zip_archive.h: the files in a zip archive whose entries are stored, as torch and Keras write them.
//
// An archive is refused as a whole if any entry is compressed, encrypted or a link, or occurs twice. So is one with an entry outside the
// file, on another entry, or with a name that leaves the archive's folder. Nothing is copied: an entry is a window of the open file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/formats/input_file.h"

namespace serin::formats {

struct ZipEntry {
  size_t offset = 0;  ///< of the bytes in the file
  size_t size = 0;
  uint32_t checksum = 0;
};

class ZipArchive {
 public:
  static constexpr size_t kEntries = 1'000'000;

  /// kCorrupt: no zip archive, cut off, contradictory. kUnsupported: compressed, encrypted, in several parts.
  static Result<ZipArchive> open(const std::shared_ptr<const InputFile>& file);

  const std::map<std::string, ZipEntry, std::less<>>& entries() const { return entries_; }
  const ZipEntry* find(std::string_view name) const;
  /// The whole entry, with its checksum verified. kTooLarge over `limit`.
  Result<std::string> read(std::string_view name, size_t limit) const;
  const std::shared_ptr<const InputFile>& file() const { return file_; }

 private:
  explicit ZipArchive(std::shared_ptr<const InputFile> file) : file_(std::move(file)) {}

  std::shared_ptr<const InputFile> file_;
  std::map<std::string, ZipEntry, std::less<>> entries_;
};

}  // namespace serin::formats
