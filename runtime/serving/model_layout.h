// model_layout.h: what lies in the places that models are served from, as their folders say it. Nothing of a model is read here.
//
//   a folder of models     digits/serin.yaml, digits/config.pbtxt (both optional), digits/1/model.onnx
//   one model              1/model.onnx, beside it the same two files; or model.onnx right there, which is version 1
//   one file               version 1 of a model that has no settings
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serving/model_source.h"

namespace serin::serving {

/// What files look like from outside: any difference means that they were changed.
struct Fingerprint {
  std::vector<int64_t> parts;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

struct VersionFiles {
  std::string path;  ///< its folder; or the model's file itself
  Fingerprint fingerprint;
};

struct ModelFiles {
  std::string repository;  ///< the place it was found in, as the source names it
  std::string folder;      ///< where its settings lie; empty: a bare file, which has none
  Fingerprint settings;    ///< of the files right in that folder
  std::map<uint64_t, VersionFiles> versions;
  std::optional<VersionPolicy> policy = {};  ///< of the place, as the labels
  Labels labels = {};
};

using ModelsByName = std::map<std::string, ModelFiles, std::less<>>;

/// Things worth saying once: names that are left out, and why.
class Remarks {
 public:
  void say(const std::string& what);

 private:
  std::set<std::string> said_;
};

/// Letters, digits, '_', '-' and '.'; the first is no '.'; at most 256: what is no such name is never looked for on disk.
bool is_model_name(std::string_view name);

/// kNotFound, kInvalidArgument: why nothing can be served from there, naming the path.
Status check_root(const ModelRoot& root);

/// What lies in a place that no model was found in, and how it is served: "; 'model.onnx' lies right in it: serin serve models/model.onnx". Empty: nothing known.
std::string describe_misplaced(const ModelRoot& root);

/// One model whose folder this is.
ModelFiles list_model(const std::string& name, const std::string& folder, Remarks& remarks);

/// kNotFound: the place has no such model; kUnavailable: it cannot be looked at. Looks at nothing else there.
Result<ModelFiles> find_model(const ModelRoot& root, const std::string& name, Remarks& remarks);

/// Nothing where the place cannot be looked at, which is not the same as one that is empty.
std::optional<ModelsByName> list_models(const ModelRoot& root, Remarks& remarks);

}  // namespace serin::serving
