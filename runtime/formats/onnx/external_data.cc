// external_data.cc: reads the entries that name a part of a file, and keeps the files open.

#include "runtime/formats/onnx/external_data.h"

#include <fmt/format.h>

#include <optional>

#include "runtime/base/number.h"
#include "runtime/formats/open_beneath.h"

namespace serin::formats::onnx {
namespace {

Result<size_t> parse_size(std::string_view key, std::string_view text) {
  if (const auto value = parse_number<size_t>(text)) return *value;
  return Error{Code::kCorrupt, fmt::format("external data has {} '{}', which is no size in bytes", key, text.substr(0, 40))};
}

}  // namespace

Result<FileWindow> ExternalData::find(const Entries& entries, size_t bytes) {
  std::string_view location;
  std::optional<size_t> offset, length;
  for (const auto& [key, value] : entries) {
    if (key == "location") {
      location = value;
    } else if (key == "offset") {
      SERIN_TRY(offset, parse_size(key, value));
    } else if (key == "length") {
      SERIN_TRY(length, parse_size(key, value));
    } else if (key == "checksum") {
      return Error{Code::kUnsupported, "external data has a checksum, which is not verified; write it without one"};
    } else {
      return Error{Code::kCorrupt, fmt::format("external data has an unknown entry '{}'", key)};
    }
  }
  if (folder_.empty())
    return Error{Code::kPermissionDenied, fmt::format("external data '{}' is not allowed for a model in memory", location)};

  auto found = files_.find(location);
  if (found == files_.end()) {
    if (location.empty()) return Error{Code::kCorrupt, "external data has no location"};
    SERIN_TRY(InputFile file, open_beneath(folder_, location, "external data"));
    found = files_.emplace(std::string(location), std::make_shared<const InputFile>(std::move(file))).first;
  }
  const InputFile& file = *found->second;
  const size_t start = offset.value_or(0);
  if (length && *length != bytes)
    return Error{Code::kCorrupt, fmt::format("needs {} bytes, its external data has length {}", bytes, *length)};
  if (start > file.size() || bytes > file.size() - start)
    return Error{Code::kCorrupt, fmt::format("needs {} bytes from offset {} of '{}', which has {}", bytes, start, location, file.size())};
  return FileWindow{found->second, start};
}

Status ExternalData::unchanged() const {
  for (const auto& [location, file] : files_) SERIN_CHECK(file->unchanged());
  return {};
}

}  // namespace serin::formats::onnx
