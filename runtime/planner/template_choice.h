// template_choice.h: which template of a folder is for a model: the most specific one whose `applies_to` holds.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/planner/places.h"
#include "runtime/planner/template.h"

namespace serin::planner {

/// Properties of a model that conditions ask for.
struct Traits {
  std::string name, format;         ///< "onnx"
  std::set<std::string> inputs;     ///< kinds: image, text, table, tensor
  std::set<std::string> operators;  ///< as ONNX names them, before anything is fused
  int64_t parameters = 0;
};

/// Reads the model's graph, and no weights.
Result<Traits> traits_of(const FoundModel& model);

struct Choice {
  std::string file;
  std::string why;                                           ///< "its input is image, and it has at most 100 M parameters"
  std::vector<std::pair<std::string, std::string>> why_not;  ///< the other files
};

/// Of the .yaml and .yml files in the folder. kNotFound: none is for the model (the message says why not), or there is none. kInvalidArgument:
/// two are equally specific, or one cannot be read.
Result<Choice> choose_template(const std::string& folder, const std::vector<std::string>& sets, const Traits& traits);

}  // namespace serin::planner
