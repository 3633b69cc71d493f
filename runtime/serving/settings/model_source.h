// model_source.h: configures the places of models, and which models and versions are loaded from them.
//
//   {.roots = {{"models"}}}                                   a folder of models: models/<name>/<version>/model.onnx
//   {.roots = {{"a"}, {"b"}}}                                 two of them
//   {.roots = {{"/mnt/models", "digits"}}}                    one model, its versions: /mnt/models/<version>/model.onnx
//   {.roots = {{"digits.onnx"}}}                              one file: model 'digits', version 1
//   {.roots = {{"a"}}, .control = Control::kExplicit, .load_at_start = {"digits"}}
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::serving {

enum class Control : uint8_t {
  kPoll,      ///< all models in these places, checked for changes regularly
  kNone,      ///< all models in these places at the start of the server
  kExplicit,  ///< models named at the start, and models that clients load and unload
};

/// Versions by name.
using Labels = std::map<std::string, uint64_t, std::less<>>;

/// The versions that are served, of those present.
struct VersionPolicy {
  size_t latest = 0;                    ///< number of highest versions; 0: all
  std::vector<uint64_t> specific = {};  ///< these versions; empty: by `latest`
  /// Chooses from rising numbers.
  std::vector<uint64_t> choose(std::span<const uint64_t> there) const;

  friend bool operator==(const VersionPolicy&, const VersionPolicy&) = default;
};

struct ModelRoot {
  std::string path;
  std::string name = {};                       ///< name of the one model there; empty: a folder of models, or a file named by its stem
  std::optional<VersionPolicy> versions = {};  ///< for a named model whose own settings do not set it
  Labels labels = {};                          ///< likewise

  friend bool operator==(const ModelRoot&, const ModelRoot&) = default;
};

/// The contents of another server's list of models.
struct ListedModels {
  std::vector<ModelRoot> roots;           ///< each with a name, all different
  std::vector<std::string> remarks = {};  ///< parts of the file without effect, for the log
};

/// Such a file, or a registry, which is read again while the server runs.
struct ModelList {
  std::string path = {};  ///< empty: there is none
  /// Files whose changes make it be read again, also those of a read that failed, ten seconds later. Null: `path`, by a change alone.
  std::function<std::vector<std::string>()> files = {};
  std::function<Result<ListedModels>(const std::string& path)> read = {};
  std::optional<std::chrono::milliseconds> poll = {};  ///< interval; 0: on request; absent: the interval for places
  std::vector<std::string> remarks = {};               ///< remarks of the first read
};

struct ModelSource {
  std::vector<ModelRoot> roots;
  Control control = Control::kPoll;
  std::chrono::milliseconds poll{500};
  std::vector<std::string> load_at_start = {};  ///< for kExplicit; "*": all
  ModelList list = {};                          ///< origin of `roots`
  bool labels_need_versions = false;            ///< a label in `roots` for a version that is not served is an error
  bool places_may_come = false;                 ///< wait for a named model's place that does not exist at the start
};

/// Converts a place as other servers' users write it: file:///models is /models.
inline std::string local_path(std::string path) {
  constexpr std::string_view kScheme = "file://";
  if (path.starts_with(kScheme)) path.erase(0, kScheme.size());
  return path;
}

}  // namespace serin::serving
