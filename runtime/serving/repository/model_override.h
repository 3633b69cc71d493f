// model_override.h: what a client sends along when it asks for a model to be loaded, in place of what lies in the model's folder.
//
// Files are kept in a folder of our own that nobody else can read, for as long as the model is loaded from it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::serving {

struct ModelOverride {
  std::string config = {};  ///< a ModelConfig as JSON, in place of config.pbtxt; empty: none
  std::map<std::string, std::string> files =
      {};  ///< "1/model.onnx" -> its bytes; where there are any, nothing is read from the model's folder
};

class OverrideFolder {
 public:
  /// kInvalidArgument where a file's name is not <version>/<name> or <name>; kIo.
  static Result<std::shared_ptr<const OverrideFolder>> write(const ModelOverride& overrides);
  ~OverrideFolder();
  OverrideFolder(const OverrideFolder&) = delete;
  OverrideFolder& operator=(const OverrideFolder&) = delete;

  const std::string& config() const { return config_; }
  /// Empty: no files were sent.
  const std::string& path() const { return path_; }
  /// Whether what was sent may make us look there: into itself only.
  bool may_read(const std::string& path) const;

 private:
  OverrideFolder() = default;
  std::string config_, path_;
};

}  // namespace serin::serving
