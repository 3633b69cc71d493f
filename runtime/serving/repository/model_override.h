// model_override.h: files that a client sends with a load request to replace those in the model's folder.
//
// They are stored in a private folder that no other user can read, as long as the model is loaded from it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/temporary_folder.h"

namespace serin::serving {

struct ModelOverride {
  std::string config = {};                        ///< a ModelConfig as JSON that replaces config.pbtxt; empty: none
  std::map<std::string, std::string> files = {};  ///< "1/model.onnx" -> its bytes; if there are any, the model's folder is not read
};

class OverrideFolder {
 public:
  /// kInvalidArgument if a file's name is not <version>/<name> or <name>; kIo.
  static Result<std::shared_ptr<const OverrideFolder>> write(const ModelOverride& overrides);

  const std::string& config() const { return config_; }
  /// Empty: no files were sent.
  const std::string& path() const { return folder_.path(); }
  /// Whether the client's configuration may name that path: only paths in this folder.
  bool may_read(const std::string& path) const;

 private:
  OverrideFolder() = default;
  std::string config_;
  TemporaryFolder folder_;
};

}  // namespace serin::serving
