// temporary_folder.h: a folder that is gone with its object.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin {

/// Movable; empty after a move.
class TemporaryFolder {
 public:
  /// Makes one in the folder for temporary files, which TMPDIR names. `prefix`: of its name. kIo: there is no such folder.
  static Result<TemporaryFolder> make(std::string_view prefix);
  TemporaryFolder() = default;  ///< no folder
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();  ///< removes it with everything in it

  const std::string& path() const { return path_; }  ///< empty: there is none

 private:
  std::string path_;
};

}  // namespace serin
