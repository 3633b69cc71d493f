// model_source.h: where models lie, and who decides which of them, and of their versions, are loaded.
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
  kPoll,      ///< all that lies there, looked at again and again
  kNone,      ///< all that lies there when the server starts
  kExplicit,  ///< what is named at the start, and what clients ask for (load, unload)
};

/// Versions by name.
using Labels = std::map<std::string, uint64_t, std::less<>>;

/// Which of the versions that lie there are served.
struct VersionPolicy {
  size_t latest = 0;                    ///< the highest so many; 0: all
  std::vector<uint64_t> specific = {};  ///< these; empty: by `latest`
  /// Of numbers that rise.
  std::vector<uint64_t> choose(std::span<const uint64_t> there) const;

  friend bool operator==(const VersionPolicy&, const VersionPolicy&) = default;
};

struct ModelRoot {
  std::string path;
  std::string name = {};  ///< of the one model that lies there; empty: a folder of models, or a file that is named by its stem
  std::optional<VersionPolicy> versions = {};  ///< with a name: of that model, where its own settings do not say
  Labels labels = {};                          ///< the same

  friend bool operator==(const ModelRoot&, const ModelRoot&) = default;
};

/// What a file of another server's lists.
struct ListedModels {
  std::vector<ModelRoot> roots;           ///< each with a name, no two alike
  std::vector<std::string> remarks = {};  ///< what of the file changes nothing, for the log
};

/// Such a file, which is read again while it serves.
struct ModelList {
  std::string path = {};  ///< empty: there is none
  std::function<Result<ListedModels>(const std::string& path)> read = {};
  std::optional<std::chrono::milliseconds> poll =
      {};                                 ///< how often; 0: when somebody asks for it; absent: as often as places are looked at
  std::vector<std::string> remarks = {};  ///< of the first time
};

struct ModelSource {
  std::vector<ModelRoot> roots;
  Control control = Control::kPoll;
  std::chrono::milliseconds poll{500};
  std::vector<std::string> load_at_start = {};  ///< of kExplicit; "*": all
  ModelList list = {};                          ///< that `roots` come from
  bool labels_need_versions = false;            ///< a place's label of a version that is not there to be served is a mistake
  bool places_may_come = false;                 ///< a named model's place that is not there at the start is waited for
};

/// Of a place as other servers' users may write it: file:///models is /models.
inline std::string local_path(std::string path) {
  constexpr std::string_view kScheme = "file://";
  if (path.starts_with(kScheme)) path.erase(0, kScheme.size());
  return path;
}

}  // namespace serin::serving
