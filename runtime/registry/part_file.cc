#include "runtime/registry/part_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/registry/oci_layout.h"

namespace serin::registry {

Result<PartFile> PartFile::open(std::string path, uint64_t most) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  PartFile part(std::move(path), fd);
  if (fd < 0) return part.failed();
  std::vector<char> piece(1 << 20);
  while (true) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return part.failed();
    if (got == 0) break;
    part.bytes_ += static_cast<uint64_t>(got);
    if (part.bytes_ > most) {
      SERIN_CHECK(part.restart());
      break;
    }
    part.sum_.add({piece.data(), static_cast<size_t>(got)});
  }
  return part;
}

PartFile::~PartFile() {
  if (fd_ < 0) return;
  if (bytes_ == 0) remove();  // nothing came, so there is nothing to continue
  ::close(fd_);
}

Error PartFile::failed() const { return io_error(path_, {errno, std::generic_category()}); }

Status PartFile::append(std::string_view bytes) {
  sum_.add(bytes);
  bytes_ += bytes.size();
  if (!write_all(fd_, bytes)) return failed();
  return {};
}

Status PartFile::restart() {
  if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) != 0) return failed();
  sum_ = Sha256();
  bytes_ = 0;
  return {};
}

std::string PartFile::digest() { return sum_.take(); }

Status PartFile::finish(const std::string& to) {
  if (::fsync(fd_) != 0 || ::rename(path_.c_str(), to.c_str()) != 0) return failed();
  return {};
}

void PartFile::remove() { ::unlink(path_.c_str()); }

}  // namespace serin::registry
