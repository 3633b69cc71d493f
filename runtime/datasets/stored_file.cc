#include "runtime/datasets/stored_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/base/file.h"

namespace serin::datasets {
namespace {

Error file_error(const std::string& path) {
  const int code = errno;
  const Code kind = code == ENOENT ? Code::kNotFound : code == EACCES || code == EPERM ? Code::kPermissionDenied : Code::kIo;
  return {kind, fmt::format("{}: {}", path, std::strerror(code))};
}

}  // namespace

Result<std::unique_ptr<const StoredFile>> StoredFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return file_error(path);
  struct stat facts{};
  if (::fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    ::close(descriptor);
    return invalid(path + ": must be a regular file, because it is read in parts");
  }
  return std::unique_ptr<const StoredFile>(new StoredFile(path, descriptor, static_cast<uint64_t>(facts.st_size)));
}

Result<std::unique_ptr<const StoredFile>> StoredFile::without_name(const std::string& path, const std::function<Status(int)>& write) {
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error).string();
  if (error) return Error{Code::kIo, fmt::format("{}: the folder for temporary files: {}", path, error.message())};
  std::string name = folder + "/serin-XXXXXX";
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) return file_error(folder).in(path);
  ::unlink(name.c_str());
  std::unique_ptr<StoredFile> file(new StoredFile(path, descriptor, 0));
  SERIN_CHECK(write(descriptor));
  struct stat facts{};
  if (::fstat(descriptor, &facts) != 0) return file_error(folder).in(path);
  file->size_ = static_cast<uint64_t>(facts.st_size);
  return std::unique_ptr<const StoredFile>(std::move(file));
}

StoredFile::~StoredFile() { ::close(descriptor_); }

Status StoredFile::read(uint64_t offset, size_t bytes, char* to) const {
  const auto got = read_at(descriptor_, offset, {to, bytes});
  if (!got) return file_error(path_);
  if (*got < bytes) return Error{Code::kCorrupt, path_ + ": became shorter while it was read"};
  return {};
}

Result<std::string> StoredFile::read(uint64_t offset, size_t bytes) const {
  std::string text(bytes, '\0');
  SERIN_CHECK(read(offset, bytes, text.data()));
  return text;
}

}  // namespace serin::datasets
