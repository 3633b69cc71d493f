// kept_files.h: Keeps results that are slow to compute on disk, under the text they were made from.
#pragma once

#include <optional>
#include <string>

namespace serin::kernels::cuda {

/// FNV-1a, 64 bits (Fowler, Noll, Vo), in hexadecimal digits: a short name for a long text. Two texts may have the same.
std::string digest(const std::string& text);

/// One file for each key, written to a temporary file and then renamed, so that a concurrent reader finds it whole or not at all. The file
/// contains scope and key: a file of another scope, or a torn one, is ignored. Files that cannot be read or written only cost the
/// computation again. Safe for several threads and several processes.
class KeptFiles {
 public:
  /// `scope`: the conditions of the bytes (device, libraries, build). An empty folder: nothing is kept.
  KeptFiles(std::string folder, std::string scope);

  std::optional<std::string> find(const std::string& key) const;
  void keep(const std::string& key, const std::string& bytes) const;

 private:
  std::string path_of(const std::string& key) const;
  const std::string folder_, scope_;
};

}  // namespace serin::kernels::cuda
