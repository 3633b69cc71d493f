// text_print.cc: prints a graph in the text form. README.md shows the form; text_parse.cc reads it back.
//
// Attributes that have their default and values of weights are left out. Nodes come in topological order, by the order of the file where
// that leaves a choice, so that the text of a model is stable and two of them can be compared line by line.

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "runtime/graph/graph.h"
#include "runtime/graph/text/text.h"

namespace serin::graph {
namespace {

constexpr int64_t kShownElements = 16;

std::string quoted_text(std::string_view text) {
  std::string escaped = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    if (c == '\n')
      escaped += "\\n";
    else
      escaped += c;
  }
  return escaped + '"';
}

bool is_word(const std::string& text) { return !text.empty() && word_length(text) == text.size() && text != "inf" && text != "nan"; }

std::string name_text(const std::string& name) { return is_word(name) && name != "_" && !find_dtype(name) ? name : quoted_text(name); }

/// The shortest decimal that reads back as the same number; for a float, and a double that is one, as the same float: 0.1, not 0.10000000149.
std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const auto narrow = static_cast<float>(value);
  std::string text = static_cast<double>(narrow) == value ? fmt::format("{}", narrow) : fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <class Range, class F>
std::string list(const Range& range, F&& element) {
  std::string text;
  for (const auto& item : range) text.append(text.empty() ? "" : ",").append(element(item));
  return text;
}

bool is_written_out(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

bool shows_elements(const Constant& constant) {
  if (constant.dtype == DType::kString) return constant.elements() <= kShownElements;
  if (is_written_out(constant.dtype)) return constant.elements() == 1;
  return dtype_size(constant.dtype) > 0 && constant.elements() <= kShownElements &&
         (integers_of(constant) || constant.dtype == DType::kUInt64);
}

std::string elements_text(const Constant& constant) {
  if (constant.dtype == DType::kString) return list(constant.strings, quoted_text);
  if (constant.dtype == DType::kFloat32) return number_text(constant.span<float>()[0]);
  if (constant.dtype == DType::kFloat64) return number_text(constant.span<double>()[0]);
  if (constant.dtype == DType::kUInt64) return list(constant.span<uint64_t>(), [](uint64_t x) { return fmt::format("{}", x); });
  return list(*integers_of(constant), [](int64_t x) { return fmt::format("{}", x); });
}

/// "w[4,3,3,3]", "k:i64[2]{0,-1}", "i64{1,2}", "0.5"
std::string constant_text(const std::string& name, const Constant& constant) {
  const bool shown = shows_elements(constant);
  if (name.empty() && shown && constant.dtype == DType::kFloat32 && constant.shape.is_scalar()) return elements_text(constant);
  std::string text = name.empty() ? "" : name_text(name);
  if (name.empty() || constant.dtype != DType::kFloat32) text.append(name.empty() ? "" : ":").append(dtype_name(constant.dtype));
  if (!name.empty() || constant.shape.rank() != 1 || !shown) text += constant.shape.str();
  if (shown) text += "{" + elements_text(constant) + "}";
  return text;
}

std::string attribute_text(const Attribute& attribute) {
  struct Visitor {
    std::string operator()(int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return number_text(value); }
    std::string operator()(const std::string& value) const { return is_word(value) ? value : quoted_text(value); }
    std::string operator()(const std::vector<int64_t>& values) const { return "[" + list(values, *this) + "]"; }
    std::string operator()(const std::vector<double>& values) const { return "[" + list(values, *this) + "]"; }
    std::string operator()(const std::vector<std::string>& values) const { return "[" + list(values, quoted_text) + "]"; }
    std::string operator()(const ConstantPtr& value) const { return value ? constant_text("", *value) : "_"; }
  };
  return std::visit(Visitor(), attribute);
}

/// Attributes that say what would hold without them. Those of one name mean the same in every operator listed in op.h, but for alpha and beta.
bool is_default(const Node& node, const std::string& key, const Attribute& attribute) {
  if (const auto* integer = std::get_if<int64_t>(&attribute)) {
    if (key == "group" || key == "keepdims") return *integer == 1;
    if (key == "transA" || key == "transB" || key == "noop_with_empty_axes" || key == "ceil_mode" || key == "select_last_index")
      return *integer == 0;
    if (key == "count_include_pad" || key == "exclusive" || key == "reverse" || key == "allowzero" || key == "training_mode")
      return *integer == 0;
  }
  if (const auto* number = std::get_if<double>(&attribute)) {
    if (node.op == Op::kGemm && (key == "alpha" || key == "beta")) return *number == 1.0;
    if (node.op == Op::kLeakyRelu && key == "alpha") return static_cast<float>(*number) == 0.01F;
    if (key == "epsilon") return static_cast<float>(*number) == 1e-5F;
  }
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&attribute)) {
    if (key == "strides" || key == "dilations") return std::ranges::all_of(*integers, [](int64_t x) { return x == 1; });
    if (key == "pads" && node.op != Op::kPad) return std::ranges::all_of(*integers, [](int64_t x) { return x == 0; });
  }
  if (const auto* text = std::get_if<std::string>(&attribute))
    return (key == "auto_pad" && *text == "NOTSET") || (key == "approximate" && *text == "none");
  return false;
}

class Printer {
 public:
  Printer(const Graph& graph, const PrintOptions& options, std::string indent)
      : graph_(graph), options_(options), indent_(std::move(indent)) {
    names_.resize(graph.value_capacity());
  }

  std::string run() {
    for (const ValueId id : graph_.inputs()) line(fmt::format("{}: {}", name(id), print(graph_.value(id).type)));
    const auto order = graph_.topological_order();
    for (const NodeId id : order ? *order : graph_.nodes()) node_lines(graph_.node(id));
    return_line();
    return std::move(text_);
  }

 private:
  void line(const std::string& content) { text_ += indent_ + content + "\n"; }

  /// The value's name as text; a second value of the same name gets a suffix.
  const std::string& name(ValueId id) {
    std::string& text = names_[static_cast<size_t>(id)];
    if (!text.empty()) return text;
    const Value& value = graph_.value(id);
    std::string plain = value.name.empty() ? fmt::format("v{}", id) : value.name;
    for (int i = 2; !taken_.insert(plain).second; ++i) plain = fmt::format("{}~{}", value.name, i);
    return text = name_text(plain);
  }

  std::string operand(ValueId id) {
    if (id == kNone) return "_";
    const Value& value = graph_.value(id);
    if (!value.constant) return name(id);
    if (value.name.empty() && shows_elements(*value.constant)) return constant_text("", *value.constant);
    name(id);
    // name() decided on the plain name; constant_text quotes it again where it must.
    std::string plain = names_[static_cast<size_t>(id)];
    if (plain.front() == '"') plain = value.name;
    return constant_text(plain, *value.constant);
  }

  void node_lines(const Node& node) {
    std::string results, arguments;
    for (const ValueId id : node.outputs) results.append(results.empty() ? "" : ", ").append(id == kNone ? "_" : name(id));
    for (const ValueId id : node.inputs) arguments.append(arguments.empty() ? "" : ", ").append(operand(id));
    for (const auto& [key, attribute] : node.attributes) {
      if (is_default(node, key, attribute)) continue;
      arguments.append(arguments.empty() ? "" : ", ").append(key).append("=").append(attribute_text(attribute));
    }
    line(fmt::format("{} = {}({}){}", results, op_name(node.op), arguments, comment(node)));
    for (size_t i = 0; i < node.bodies.size(); ++i) {
      line(node.op == Op::kIf ? (i == 0 ? "  then:" : "  else:") : "  body:");
      text_ += Printer(*node.bodies[i], options_, indent_ + "    ").run();
    }
  }

  std::string comment(const Node& node) {
    std::string text;
    if (options_.types) {
      for (const ValueId id : node.outputs) {
        if (id != kNone) text.append(text.empty() ? "" : ", ").append(print(graph_.value(id).type));
      }
    }
    const ValueId first = node.outputs.empty() ? kNone : node.outputs[0];
    if (options_.names && !node.name.empty() && (first == kNone || graph_.value(first).name != node.name)) {
      text.append(text.empty() ? "" : "  ").append(node.name);
    }
    return text.empty() ? "" : "  # " + text;
  }

  void return_line() {
    std::string results;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId id = graph_.outputs()[i];
      results.append(results.empty() ? "" : ", ").append(operand(id));
      const bool renamed = i < graph_.output_names().size() && graph_.output_names()[i] != graph_.value(id).name;
      if (renamed) results.append(" as ").append(name_text(graph_.output_names()[i]));
    }
    line("return " + results);
  }

  const Graph& graph_;
  const PrintOptions& options_;
  std::string indent_;
  std::string text_;
  std::vector<std::string> names_;
  std::set<std::string> taken_;
};

}  // namespace

std::string print(const Type& type) {
  std::string tensor = std::string(dtype_name(type.dtype)) + (type.shape ? print(*type.shape) : "[...]");
  if (type.kind == ValueKind::kSequence) return "sequence(" + tensor + ")";
  if (type.kind == ValueKind::kOptional) return "optional(" + tensor + ")";
  if (type.kind == ValueKind::kOptionalSequence) return "optional(sequence(" + tensor + "))";
  return tensor;
}

std::string print(const Graph& graph, const PrintOptions& options) { return Printer(graph, options, "").run(); }

}  // namespace serin::graph
