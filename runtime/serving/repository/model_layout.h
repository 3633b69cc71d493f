// model_layout.h: lists the models in the places that they are served from, by their folders. It reads no model.
//
//   a folder of models     digits/serin.yaml, digits/config.pbtxt (both optional), digits/1/model.onnx
//   one model              1/model.onnx, with the same two files next to it; or model.onnx itself (or the only .onnx file), as version 1
//   one file               version 1 of a model that has no settings
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serving/repository/fingerprint.h"
#include "runtime/serving/settings/model_source.h"

namespace serin::serving {

struct VersionFiles {
  std::string path;  ///< its folder, or the model's file itself
  Fingerprint fingerprint;
  std::string unreadable = {};  ///< the reason why it cannot be examined; empty: it can
};

struct ModelFiles {
  std::string repository;  ///< the place that contains it, as named in the source
  std::string folder;      ///< folder of its settings; empty: a single file without settings
  Fingerprint settings;    ///< for the files directly in that folder
  std::map<uint64_t, VersionFiles> versions;
  std::string unreadable = {};               ///< the reason why it cannot be examined, so that its versions are unknown; empty: it can
  std::optional<VersionPolicy> policy = {};  ///< policy of the place; likewise the labels
  Labels labels = {};
  /// Whether the place was configured to contain this one model, whatever the name of its folder.
  bool alone() const { return folder == repository; }
  std::vector<uint64_t> numbers() const;  ///< numbers of the versions, ascending
};

using ModelsByName = std::map<std::string, ModelFiles, std::less<>>;

/// Log messages that are written once: omitted names, with the reason.
class Remarks {
 public:
  void say(const std::string& what);

 private:
  std::set<std::string> said_;
};

/// UTF-8 without '/' and control characters, without a leading '.', at most 256 bytes. Other names are never looked up on disk.
bool is_model_name(std::string_view name);
inline constexpr std::string_view kModelNameRule = "has at most 256 bytes of UTF-8, no '/', no control characters, and no '.' in front";

/// kNotFound or kInvalidArgument, naming the path, with the reason why nothing can be served from there.
Status check_root(const ModelRoot& root);
/// kInvalidArgument if two files are models with the same name: every named file must be served.
Status check_names(const std::vector<ModelRoot>& roots);

/// Describes files in a folder of models without a model, and how to serve them: "; 'model.onnx' lies right in it: serin serve
/// models/model.onnx". Empty: no known files.
std::string describe_misplaced(const ModelRoot& root);
/// The same for a model without a version, and where a version is expected; without the path.
std::string describe_no_version(const ModelFiles& files);

/// Lists models. For each version, it examines at most `most_files` files closely (fingerprint.h).
class ModelLister {
 public:
  explicit ModelLister(size_t most_files) : most_files_(most_files) {}

  /// Lists the one model with this folder; no versions if there is no such folder.
  ModelFiles list_model(const std::string& name, const std::string& folder);
  /// kNotFound: the place has no such model; kUnavailable: it cannot be examined. It examines nothing else there.
  Result<ModelFiles> find_model(const ModelRoot& root, const std::string& name);
  /// Returns an error if the place cannot be examined, which differs from an empty place. `places`: all places, because one may be a file
  /// in another.
  Result<ModelsByName> list_models(const ModelRoot& root, const std::vector<ModelRoot>& places);

  /// Reported once: omitted names, with the reason.
  Remarks remarks;

 private:
  VersionFiles look_at(const std::string& path) const;
  ModelFiles list_single(const ModelRoot& root);
  void remark_on_loose_files(const ModelRoot& root, const std::vector<std::string>& files, const std::vector<ModelRoot>& places);

  const size_t most_files_;
};

}  // namespace serin::serving
