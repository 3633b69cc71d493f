#include "runtime/registry/sha256.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "runtime/base/file.h"

namespace serin::registry {
namespace {

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

Error failed(const std::string& path, const char* what) {
  const int reason = errno;
  const Code code = reason == ENOENT ? Code::kNotFound : reason == EACCES || reason == EPERM ? Code::kPermissionDenied : Code::kIo;
  return {code, fmt::format("{} {}: {}", path, what, std::strerror(reason))};
}

/// `to` below 0: nowhere.
Result<Measured> read_through(const std::string& from, int to, const std::string& to_path) {
  // Nothing is waited for: a FIFO would block forever.
  const File file(from, O_RDONLY | O_NONBLOCK);
  struct stat info{};
  if (file.fd() < 0 || ::fstat(file.fd(), &info) != 0) return failed(from, "cannot be read");
  if (!S_ISREG(info.st_mode)) return invalid(from + " is not a regular file");
  constexpr size_t kPiece = 1 << 20;
  std::vector<char> piece(kPiece);
  Sha256 sum;
  Measured measured;
  while (true) {
    const ssize_t got = ::read(file.fd(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(from, "cannot be read");
    if (got == 0) break;
    const std::string_view bytes(piece.data(), static_cast<size_t>(got));
    sum.add(bytes);
    measured.bytes += bytes.size();
    if (to >= 0 && !write_all(to, bytes)) return failed(to_path, "cannot be written");
  }
  measured.digest = sum.take();
  return measured;
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }

void Sha256::add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }

std::string Sha256::take() {
  std::array<unsigned char, 32> digest{};
  EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  return fmt::format("sha256:{:02x}", fmt::join(digest, ""));
}

std::string digest_of(std::string_view bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.take();
}

bool is_digest(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  constexpr size_t kDigits = 64;
  const auto hexadecimal = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == kPrefix.size() + kDigits && text.starts_with(kPrefix) &&
         std::ranges::all_of(text.substr(kPrefix.size()), hexadecimal);
}

Result<Measured> measure_file(const std::string& path) { return read_through(path, -1, {}); }

Result<Measured> copy_file(const std::string& from, const std::string& to) {
  const File copy(to, O_WRONLY | O_CREAT | O_EXCL);
  if (copy.fd() < 0) return failed(to, "cannot be written");
  auto measured = read_through(from, copy.fd(), to);
  if (measured && ::fsync(copy.fd()) != 0) return failed(to, "cannot be written");
  return measured;
}

}  // namespace serin::registry
