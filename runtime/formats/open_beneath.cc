// open_beneath.cc: walks by openat with O_NOFOLLOW, one path component at a time.
//
// That is what openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS) does in one call; without ".." and without links there is no way up, so the walk
// gives the same guarantee on every kernel and under every seccomp filter. A second name for the same file (a hard link) is refused as well:
// it is the one kind of link that O_NOFOLLOW does not see.

#include "runtime/formats/open_beneath.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace serin::formats {
namespace {

/// A path that a model names, in errors.
struct Named {
  std::string_view role, path;

  std::string str() const { return fmt::format("{} '{}'", role, path.substr(0, path.find('\0'))); }
  Error denied(std::string_view why) const { return {Code::kPermissionDenied, fmt::format("{} {}", str(), why)}; }
};

Result<std::vector<std::string>> components_of(const Named& named) {
  const std::string_view path = named.path;
  if (path.find('\0') != std::string_view::npos) return named.denied("has a NUL byte in its path");
  if (path.starts_with('/')) return named.denied("is an absolute path; it must lie beneath the model's folder");
  std::vector<std::string> components;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    if (component == "..") return named.denied("leads upward with '..'; it must lie beneath the model's folder");
    if (!component.empty() && component != ".") components.emplace_back(component);
    begin = end + 1;
  }
  if (components.empty() || path.ends_with('/')) return named.denied("names no file");
  return components;
}

}  // namespace

Result<InputFile> open_beneath(const std::string& folder, std::string_view relative, std::string_view role) {
  const Named named{role, relative};
  SERIN_TRY(const std::vector<std::string> components, components_of(named));
  int at = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return system_error(folder, "cannot be opened");
  for (size_t i = 0; i < components.size(); ++i) {
    const bool last = i + 1 == components.size();
    const int flags = last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY;
    const int next = ::openat(at, components[i].c_str(), flags | O_NOFOLLOW | O_CLOEXEC);
    const int code = errno;
    ::close(at);
    errno = code;
    if (next < 0 && (code == ELOOP || code == ENOTDIR))
      return named.denied(fmt::format("goes through '{}', which is a link or no folder; links are not followed", components[i]));
    if (next < 0) return system_error(named.str(), "cannot be opened");
    at = next;
  }
  SERIN_TRY(InputFile file, InputFile::adopt(at, named.str()));
  if (file.links() != 1) return named.denied(fmt::format("has {} names (hard links); a copy is needed", file.links()));
  return file;
}

}  // namespace serin::formats
