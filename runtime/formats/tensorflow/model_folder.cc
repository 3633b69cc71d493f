// model_folder.cc: opens files of the model by openat with O_NOFOLLOW, one path component at a time.

#include "runtime/formats/tensorflow/model_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace serin::formats::tf {
namespace {

Error refused(std::string_view relative, std::string_view why) {
  return Error{Code::kPermissionDenied, fmt::format("file '{}' {}", relative.substr(0, relative.find('\0')), why)};
}

Result<std::vector<std::string>> components_of(std::string_view relative) {
  std::vector<std::string> components;
  if (relative.find('\0') != std::string_view::npos) return refused(relative, "has a NUL byte in its path");
  if (relative.starts_with('/')) return refused(relative, "is an absolute path; it must lie beneath the model's folder");
  for (size_t begin = 0; begin <= relative.size();) {
    const size_t end = std::min(relative.find('/', begin), relative.size());
    const std::string_view component = relative.substr(begin, end - begin);
    if (component == "..") return refused(relative, "leads upward with '..'; it must lie beneath the model's folder");
    if (!component.empty() && component != ".") components.emplace_back(component);
    begin = end + 1;
  }
  if (components.empty()) return refused(relative, "names no file");
  return components;
}

}  // namespace

Result<std::shared_ptr<const InputFile>> open_beneath(const std::string& folder, std::string_view relative) {
  SERIN_TRY(const std::vector<std::string> components, components_of(relative));
  int at = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return system_error(folder, "cannot be opened");
  for (size_t i = 0; i < components.size(); ++i) {
    const bool last = i + 1 == components.size();
    const int next = ::openat(at, components[i].c_str(), (last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC);
    const int code = errno;
    ::close(at);
    if (next < 0 && (code == ELOOP || code == ENOTDIR))
      return refused(relative, fmt::format("goes through '{}', which is a link or no folder; links are not followed", components[i]));
    errno = code;
    if (next < 0) return system_error(std::string(relative), "cannot be opened");
    at = next;
  }
  SERIN_TRY(InputFile file, InputFile::adopt(at, std::string(relative)));
  if (file.links() != 1) return refused(relative, fmt::format("has {} names (hard links); a copy is needed", file.links()));
  return std::shared_ptr<const InputFile>(std::make_shared<const InputFile>(std::move(file)));
}

Result<std::shared_ptr<const std::byte>> read_whole(const InputFile& file, size_t limit) {
  if (file.size() > limit)
    return Error{Code::kTooLarge, fmt::format("{}: has {} bytes, at most {} are read", file.path(), file.size(), limit)};
  const std::shared_ptr<std::byte[]> bytes(new std::byte[file.size() + 1]);
  SERIN_CHECK(file.read(0, {bytes.get(), file.size()}));
  SERIN_CHECK(file.unchanged());
  return std::shared_ptr<const std::byte>(bytes, bytes.get());
}

}  // namespace serin::formats::tf
