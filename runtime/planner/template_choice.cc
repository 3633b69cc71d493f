#include "runtime/planner/template_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "runtime/engine/engine.h"
#include "runtime/formats/model_file.h"
#include "runtime/planner/plan_model.h"
#include "runtime/planner/units.h"
#include "runtime/serving/settings/model_folder.h"

namespace serin::planner {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLeastEdge = 8;  // of a picture

/// Pictures have 1, 3 or 4 channels, before or behind height and width.
bool is_picture(const graph::Dims& dims) {
  if (dims.size() != 4) return false;
  const auto channels = [](const graph::Dim& dim) { return dim.value() == 1 || dim.value() == 3 || dim.value() == 4; };
  const auto edge = [](const graph::Dim& dim) { return dim.value().value_or(kLeastEdge) >= kLeastEdge; };
  return (channels(dims[1]) && edge(dims[2]) && edge(dims[3])) || (channels(dims[3]) && edge(dims[1]) && edge(dims[2]));
}

/// Numbers of tokens and their masks: whole numbers, in rows whose length is open, or that are named so.
bool is_tokens(const graph::Value& input, const graph::Dims& dims) {
  const bool whole = input.type.dtype == DType::kInt64 || input.type.dtype == DType::kInt32;
  const auto named = [&](std::string_view word) { return input.name.find(word) != std::string::npos; };
  return whole && dims.size() == 2 && (!dims[1].known() || named("ids") || named("token") || named("mask"));
}

std::string kind_of(const graph::Value& input) {
  if (input.type.dtype == DType::kString) return "text";
  if (input.type.kind != graph::ValueKind::kTensor || !input.type.shape) return "tensor";
  const graph::Dims& dims = *input.type.shape;
  return is_picture(dims) ? "image" : is_tokens(input, dims) ? "text" : dims.size() <= 2 ? "table" : "tensor";
}

void add_operators(const graph::Graph& graph, std::set<std::string>& operators) {
  for (const graph::NodeId id : graph.nodes()) {
    operators.emplace(graph::op_name(graph.node(id).op));
    for (const auto& body : graph.node(id).bodies) add_operators(*body, operators);
  }
}

/// "digits*" for "digits-eu"; '*' is any text.
bool fits_pattern(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string count_text(int64_t count) {
  std::string text = short_number(static_cast<double>(count), "");
  if (text.ends_with(' ')) text.pop_back();
  return text + " parameters";
}

/// Empty: all hold.
std::string first_that_fails(const Conditions& wanted, const Traits& model) {
  const auto among = [](const std::vector<std::string>& list, const std::string& word) {
    return std::ranges::find(list, word) != list.end();
  };
  if (!wanted.name.empty() && !fits_pattern(wanted.name, model.name))
    return fmt::format("is for models named {}, and this is '{}'", wanted.name, model.name);
  if (!wanted.formats.empty() && !among(wanted.formats, model.format))
    return fmt::format("is for the format {}, and the model is {}", fmt::join(wanted.formats, " or "), model.format);
  if (!wanted.inputs.empty() && std::ranges::none_of(model.inputs, [&](const std::string& kind) { return among(wanted.inputs, kind); }))
    return fmt::format("is for the input {}, and the model's is {}", fmt::join(wanted.inputs, " or "), fmt::join(model.inputs, " and "));
  for (const std::string& op : wanted.operators)
    if (!model.operators.contains(op)) return fmt::format("is for models with the operator {}", op);
  if (wanted.least && model.parameters < *wanted.least)
    return fmt::format("is for at least {}, and the model has {}", count_text(*wanted.least), count_text(model.parameters));
  if (wanted.most && model.parameters > *wanted.most)
    return fmt::format("is for at most {}, and the model has {}", count_text(*wanted.most), count_text(model.parameters));
  return {};
}

std::string what_holds(const Conditions& wanted, const Traits& model) {
  std::vector<std::string> parts;
  if (!wanted.name.empty()) parts.push_back(fmt::format("name {}", wanted.name));
  if (!wanted.formats.empty()) parts.push_back(fmt::format("format {}", model.format));
  if (!wanted.inputs.empty()) parts.push_back(fmt::format("input {}", fmt::join(model.inputs, " and ")));
  if (!wanted.operators.empty()) parts.push_back(fmt::format("operators {}", fmt::join(wanted.operators, ", ")));
  if (wanted.least || wanted.most) parts.push_back(count_text(model.parameters));
  return parts.empty() ? "it is for any model" : fmt::format("{}", fmt::join(parts, ", "));
}

/// The more of this, the more specific.
std::tuple<size_t, size_t> depth_of(const Template& made) { return {made.applies_to->count(), made.layers.files.size()}; }

std::string all_reasons(const Choice& choice) {
  std::vector<std::string> reasons;
  reasons.reserve(choice.why_not.size());
  for (const auto& [file, why] : choice.why_not) reasons.push_back(fmt::format("{} {}", file, why));
  return fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace

Result<Traits> traits_of(const FoundModel& model) {
  engine::LoadOptions load;
  load.replaceable_inputs = model.settings.optional_inputs;
  if (!model.settings.signatures.empty()) load.signature = model.settings.signatures.front();
  SERIN_TRY(const graph::Graph graph, engine::read_model(model.path, load));
  Traits traits{.name = model.name,
                .format = std::string(formats::format_word(formats::format_of(model.path).value_or(formats::Format::kOnnx))),
                .inputs = {},
                .operators = {},
                .parameters = parameters_of(graph).count};
  for (const graph::ValueId id : graph.inputs()) traits.inputs.insert(kind_of(graph.value(id)));
  if (traits.inputs.size() > 1) traits.inputs.erase("table");  // such as the scale of a picture
  add_operators(graph, traits.operators);
  return traits;
}

Result<Choice> choose_template(const std::string& folder, const std::vector<std::string>& sets, const Traits& traits) {
  const auto inside = serving::list_folder(folder);
  if (!inside) return inside.error().in(folder);
  Choice choice;
  std::vector<Template> fitting;
  for (const std::string& name : inside->files) {
    if (name.starts_with('.') || (!name.ends_with(".yaml") && !name.ends_with(".yml"))) continue;
    const std::string file = (fs::path(folder) / name).string();
    SERIN_TRY(Template made, read_template(file, sets));
    const std::string why_not = made.applies_to ? first_that_fails(*made.applies_to, traits) : "is a layer of others: it has no applies_to";
    if (why_not.empty())
      fitting.push_back(std::move(made));
    else
      choice.why_not.emplace_back(file, why_not);
  }
  if (fitting.empty() && choice.why_not.empty()) return Error{Code::kNotFound, fmt::format("{}: has no template (.yaml)", folder)};
  if (fitting.empty())
    return Error{Code::kNotFound, fmt::format("{}: no template is for the model '{}': {}", folder, traits.name, all_reasons(choice))};
  std::ranges::stable_sort(fitting, [](const Template& a, const Template& b) { return depth_of(a) > depth_of(b); });
  if (fitting.size() > 1 && depth_of(fitting[0]) == depth_of(fitting[1]))
    return invalid(
        fmt::format("{} and {} are both for the model '{}' ({}), and equally specific: name one of them, or add a condition to its "
                    "applies_to",
                    fitting[0].file(), fitting[1].file(), traits.name, what_holds(*fitting[0].applies_to, traits)));
  choice.file = fitting.front().file();
  choice.why = what_holds(*fitting.front().applies_to, traits);
  for (size_t i = 1; i < fitting.size(); ++i) choice.why_not.emplace_back(fitting[i].file(), "is for it, too, and less specific");
  return choice;
}

}  // namespace serin::planner
