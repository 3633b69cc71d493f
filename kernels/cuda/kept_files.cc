// kept_files.cc: reads and writes kept files. A file is "serin kept 1: SCOPE\nKEY_SIZE SIZE DIGEST\n", the key, the bytes.

#include "kernels/cuda/kept_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

namespace serin::kernels::cuda {

namespace {

constexpr mode_t kOwnersAlone = 0600;

std::string head_of(const std::string& scope, const std::string& key, const std::string& bytes) {
  return "serin kept 1: " + scope + "\n" + std::to_string(key.size()) + " " + std::to_string(bytes.size()) + " " + digest(bytes) + "\n" +
         key;
}

bool write_whole(int file, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t written = ::write(file, bytes.data() + at, bytes.size() - at);
    if (written <= 0) return false;
    at += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

std::string digest(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

KeptFiles::KeptFiles(std::string folder, std::string scope) : folder_(std::move(folder)), scope_(std::move(scope)) {}

std::string KeptFiles::path_of(const std::string& key) const { return folder_ + "/kernel-" + digest(scope_ + "\n" + key); }

std::optional<std::string> KeptFiles::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(path_of(key), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  // Whatever the bytes are, they lie behind the key; whether they are those that the head speaks of, the head written anew for them says.
  const size_t first = whole.find('\n'), second = first == std::string::npos ? first : whole.find('\n', first + 1);
  if (second == std::string::npos || whole.size() < second + 1 + key.size()) return std::nullopt;
  std::string bytes = whole.substr(second + 1 + key.size());
  if (whole.compare(0, second + 1 + key.size(), head_of(scope_, key, bytes)) != 0) return std::nullopt;
  return bytes;
}

void KeptFiles::keep(const std::string& key, const std::string& bytes) const {
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  const std::string path = path_of(key);
  const size_t writer = std::hash<std::thread::id>()(std::this_thread::get_id());
  const std::string aside = path + "." + std::to_string(::getpid()) + "." + std::to_string(writer);
  const int file = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kOwnersAlone);
  if (file < 0) return;
  const bool written = write_whole(file, head_of(scope_, key, bytes) + bytes);
  ::close(file);
  if (!written || std::rename(aside.c_str(), path.c_str()) != 0) std::remove(aside.c_str());
}

}  // namespace serin::kernels::cuda
