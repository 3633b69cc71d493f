// external_data.h: tensors that lie in files beside the model.
//
// A model names those files itself, so a hostile one would name /etc/shadow. A location is a plain relative path beneath the model's folder;
// every step of it is opened from the folder above it without following links, so that no link, old or made while we look, leads out.
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

  /// Where the tensor's `bytes` bytes are. kPermissionDenied: a location that leaves the folder or is a link; kCorrupt: past the end.
  Result<FileWindow> find(const Entries& entries, size_t bytes);
  size_t files() const { return files_.size(); }  ///< open ones
  Status unchanged() const;

 private:
  std::string folder_;
  std::map<std::string, std::shared_ptr<const InputFile>, std::less<>> files_;
};

}  // namespace serin::formats::onnx
