// external_data.h: finds tensor data that is stored in separate files next to the model.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/formats/onnx/file_image.h"

namespace serin::formats::onnx {

class ExternalData {
 public:
  /// Empty: no external data is allowed.
  explicit ExternalData(std::string folder) : folder_(std::move(folder)) {}

  using Entries = std::vector<std::pair<std::string_view, std::string_view>>;

  /// Finds the tensor's `bytes` bytes. kPermissionDenied: a location that leaves the folder or is a link; kCorrupt: past the end.
  Result<FileWindow> find(const Entries& entries, size_t bytes);
  size_t files() const { return files_.size(); }  ///< number of open files
  Status unchanged() const;

 private:
  std::string folder_;
  std::map<std::string, std::shared_ptr<const InputFile>, std::less<>> files_;
};

}  // namespace serin::formats::onnx
