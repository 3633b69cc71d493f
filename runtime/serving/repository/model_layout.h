// model_layout.h: what lies in the places that models are served from, as their folders say it. Nothing of a model is read here.
//
//   a folder of models     digits/serin.yaml, digits/config.pbtxt (both optional), digits/1/model.onnx
//   one model              1/model.onnx, beside it the same two files; or model.onnx right there (or the only .onnx file), which is version 1
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
  std::string path;  ///< its folder; or the model's file itself
  Fingerprint fingerprint;
  std::string unreadable = {};  ///< why it cannot be looked at; empty: it could
};

struct ModelFiles {
  std::string repository;  ///< the place it was found in, as the source names it
  std::string folder;      ///< where its settings lie; empty: a bare file, which has none
  Fingerprint settings;    ///< of the files right in that folder
  std::map<uint64_t, VersionFiles> versions;
  std::string unreadable = {};               ///< why it cannot be looked at, so that nothing is known of its versions; empty: it could
  std::optional<VersionPolicy> policy = {};  ///< of the place, as the labels
  Labels labels = {};
  /// Whether the place was said to hold this one model, whatever its folder is called.
  bool alone() const { return folder == repository; }
  std::vector<uint64_t> numbers() const;  ///< of the versions, ascending
};

using ModelsByName = std::map<std::string, ModelFiles, std::less<>>;

/// Things worth saying once: names that are left out, and why.
class Remarks {
 public:
  void say(const std::string& what);

 private:
  std::set<std::string> said_;
};

/// UTF-8 without '/' and control characters; the first is no '.'; at most 256 bytes: what is no such name is never looked for on disk.
bool is_model_name(std::string_view name);
inline constexpr std::string_view kModelNameRule = "has at most 256 bytes of UTF-8, no '/', no control characters, and no '.' in front";

/// Decimal, with or without zeros in front: 00000123 is what TensorFlow Serving's examples have.
std::optional<uint64_t> version_of_folder(std::string_view name);

/// kNotFound, kInvalidArgument: why nothing can be served from there, naming the path.
Status check_root(const ModelRoot& root);
/// kInvalidArgument where two files are models of one name: whoever names a file wants its model.
Status check_names(const std::vector<ModelRoot>& roots);

/// What lies in a folder of models that no model was found in, and how it is served: "; 'model.onnx' lies right in it: serin serve models/model.onnx". Empty:
/// nothing known.
std::string describe_misplaced(const ModelRoot& root);
/// The same of a model that has no version, and where one is looked for; without the path.
std::string describe_no_version(const ModelFiles& files);

/// Lists models. Of each version no more than `most_files` are looked at closely (fingerprint.h).
class ModelLister {
 public:
  explicit ModelLister(size_t most_files) : most_files_(most_files) {}

  /// One model whose folder this is; without versions where there is no such folder.
  ModelFiles list_model(const std::string& name, const std::string& folder);
  /// kNotFound: the place has no such model; kUnavailable: it cannot be looked at. Looks at nothing else there.
  Result<ModelFiles> find_model(const ModelRoot& root, const std::string& name);
  /// An error where the place cannot be looked at, which is not the same as one that is empty. `places`: all there are, for one may be a file that lies in another.
  Result<ModelsByName> list_models(const ModelRoot& root, const std::vector<ModelRoot>& places);

  /// Said once: what is left out, and why.
  Remarks remarks;

 private:
  VersionFiles look_at(const std::string& path) const;
  ModelFiles list_single(const ModelRoot& root);
  void remark_on_loose_files(const ModelRoot& root, const std::vector<std::string>& files, const std::vector<ModelRoot>& places);

  const size_t most_files_;
};

}  // namespace serin::serving
