// template_keys.h: the keys that templates have, and the words that Kubernetes takes.
#pragma once

#include <string>
#include <string_view>

#include "runtime/planner/template_layers.h"

namespace serin::planner {

/// Of one layer: unknown keys are refused where they stand, also if a higher layer removes them.
Status check_template_keys(const config::Node& layer);
Status check_template_setting(const Layers::Setting& setting);

/// Whether a label may have the value.
bool is_label(std::string_view word);
/// "app", or "example.com/app".
bool is_label_name(std::string_view name);
/// Of a Service, whose name is the strictest: a letter, then letters, digits and '-'.
bool is_object_name(std::string_view word, size_t most);

}  // namespace serin::planner
