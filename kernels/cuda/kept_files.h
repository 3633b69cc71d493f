// kept_files.h: bytes that took long to make, kept on disk under the text that they were made from.
#pragma once

#include <optional>
#include <string>

namespace serin::kernels::cuda {

/// FNV-1a, 64 bits (Fowler, Noll, Vo), in hexadecimal digits: a name for what is too long for one. Two texts may have the same.
std::string digest(const std::string& text);

/// A file for each key, written aside and moved into place, so that one who reads while another writes finds it whole or not at all. It says scope and key: what
/// was made for others, or is torn, is not found. Files that cannot be read or written cost the making, not the start. Thread-safe, and so are processes.
class KeptFiles {
 public:
  /// `scope`: what the bytes hold for (device, libraries, build). An empty folder: nothing is kept.
  KeptFiles(std::string folder, std::string scope);

  std::optional<std::string> find(const std::string& key) const;
  void keep(const std::string& key, const std::string& bytes) const;

 private:
  std::string path_of(const std::string& key) const;
  const std::string folder_, scope_;
};

}  // namespace serin::kernels::cuda
