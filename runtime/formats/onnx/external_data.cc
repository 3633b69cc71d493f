// external_data.cc: opens files of external data by openat with O_NOFOLLOW, one path component at a time.
//
// That is what openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS) does in one call; without ".." and without links there is no way up, so the walk
// gives the same guarantee on every kernel and under every seccomp filter. A second name for the same file (a hard link) is refused as well:
// it is the one kind of link that O_NOFOLLOW does not see.

#include "runtime/formats/onnx/external_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "runtime/base/number.h"

namespace serin::formats::onnx {
namespace {

Error denied(std::string_view location, std::string_view why) {
  return Error{Code::kPermissionDenied, fmt::format("external data '{}' {}", location, why)};
}

/// The components of a relative path that names a file beneath the folder.
Result<std::vector<std::string>> split(std::string_view location) {
  if (location.empty()) return Error{Code::kCorrupt, "external data has no location"};
  if (location.find('\0') != std::string_view::npos) return denied(location.substr(0, location.find('\0')), "has a NUL byte in its path");
  if (location.front() == '/') return denied(location, "is an absolute path; it must lie beneath the model's folder");
  std::vector<std::string> components;
  for (size_t begin = 0; begin <= location.size();) {
    const size_t end = std::min(location.find('/', begin), location.size());
    const std::string_view component = location.substr(begin, end - begin);
    if (component == "..") return denied(location, "leads upward with '..'; it must lie beneath the model's folder");
    if (!component.empty() && component != ".") components.emplace_back(component);
    begin = end + 1;
  }
  if (components.empty() || location.back() == '/') return denied(location, "names no file");
  return components;
}

Error open_error(std::string_view location, const std::string& component) {
  const int code = errno;
  if (code == ELOOP || code == ENOTDIR)
    return denied(location, fmt::format("goes through '{}', which is a link or no folder; links are not followed", component));
  errno = code;
  return system_error(fmt::format("external data '{}'", location), "cannot be opened");
}

Result<InputFile> open_beneath(const std::string& folder, std::string_view location) {
  SERIN_TRY(const std::vector<std::string> components, split(location));
  int at = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return system_error(folder, "cannot be opened");
  for (size_t i = 0; i < components.size(); ++i) {
    const bool last = i + 1 == components.size();
    const int flags = last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY;
    const int next = ::openat(at, components[i].c_str(), flags | O_NOFOLLOW | O_CLOEXEC);
    const int code = errno;
    ::close(at);
    errno = code;
    if (next < 0) return open_error(location, components[i]);
    at = next;
  }
  SERIN_TRY(InputFile file, InputFile::adopt(at, fmt::format("external data '{}'", location)));
  if (file.links() != 1) return denied(location, fmt::format("has {} names (hard links); a copy is needed", file.links()));
  return file;
}

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
  if (folder_.empty()) return denied(location, "is not allowed for a model in memory");

  auto found = files_.find(location);
  if (found == files_.end()) {
    SERIN_TRY(InputFile file, open_beneath(folder_, location));
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
