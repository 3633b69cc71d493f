// model_source.h: where models lie, and who decides which of them are loaded.
//
//   {.roots = {{"models"}}}                                   a folder of models: models/<name>/<version>/model.onnx
//   {.roots = {{"a"}, {"b"}}}                                 two of them
//   {.roots = {{"/mnt/models", "digits"}}}                    one model, its versions: /mnt/models/<version>/model.onnx
//   {.roots = {{"digits.onnx"}}}                              one file: model 'digits', version 1
//   {.roots = {{"a"}}, .control = Control::kExplicit, .load_at_start = {"digits"}}
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace serin::serving {

enum class Control : uint8_t {
  kPoll,      ///< all that lies there, looked at again and again
  kNone,      ///< all that lies there when the server starts
  kExplicit,  ///< what is named at the start, and what clients ask for (load, unload)
};

struct ModelRoot {
  std::string path;
  std::string name = {};  ///< of the one model that lies there; empty: a folder of models, or a file that is named by its stem
};

struct ModelSource {
  std::vector<ModelRoot> roots;
  Control control = Control::kPoll;
  std::chrono::milliseconds poll{500};
  std::vector<std::string> load_at_start = {};  ///< of kExplicit; "*": all
};

}  // namespace serin::serving
