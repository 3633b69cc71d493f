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
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

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
};

struct ModelSource {
  std::vector<ModelRoot> roots;
  Control control = Control::kPoll;
  std::chrono::milliseconds poll{500};
  std::vector<std::string> load_at_start = {};  ///< of kExplicit; "*": all
};

}  // namespace serin::serving
