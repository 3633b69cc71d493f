#include "runtime/base/temporary_folder.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace serin {

Result<TemporaryFolder> TemporaryFolder::make(std::string_view prefix) {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / prefix).string() + "-XXXXXX";
  if (error || !::mkdtemp(path.data())) return Error{Code::kIo, "there is no folder for temporary files: set TMPDIR"};
  TemporaryFolder made;
  made.path_ = std::move(path);
  return made;
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace serin
