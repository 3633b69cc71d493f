// expression.cc: the expressions of sizes, as SymPy's srepr writes them:
//
//   Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(-1))

#include <cctype>

#include "runtime/base/number.h"
#include "runtime/formats/torch/program.h"

namespace serin::formats::torch {
namespace {

using graph::Dim;

class Expression {
 public:
  explicit Expression(std::string_view text) : rest_(text) {}

  std::optional<Dim> all() {
    const auto value = term();
    return rest_.empty() ? value : std::nullopt;
  }

 private:
  static constexpr int kDepth = 64;

  bool take(char c) {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view word() {
    take(' ');
    size_t end = 0;
    while (end < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[end])) || rest_[end] == '_' || rest_[end] == '-')) ++end;
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return found;
  }

  std::optional<Dim> term() {
    if (depth_ == kDepth) return std::nullopt;
    ++depth_;
    const std::string_view name = word();
    const auto value = !take('(') ? std::nullopt : name == "Symbol" ? symbol() : name == "Integer" ? integer() : call(name);
    --depth_;
    return value;
  }

  std::optional<Dim> integer() {
    const auto number = parse_number<int64_t>(word());
    return number && take(')') ? std::optional(Dim(*number)) : std::nullopt;
  }

  /// 's77', positive=True, integer=True)
  std::optional<Dim> symbol() {
    if (!take('\'')) return std::nullopt;
    const std::string name(word());
    if (name.empty() || !take('\'')) return std::nullopt;
    while (take(','))
      if (word().empty() || !take('=') || word().empty()) return std::nullopt;
    return take(')') ? std::optional(Dim::symbol(name)) : std::nullopt;
  }

  std::optional<Dim> call(std::string_view function) {
    std::vector<Dim> operands;
    do {
      const auto operand = term();
      if (!operand) return std::nullopt;
      operands.push_back(*operand);
    } while (take(','));
    if (!take(')')) return std::nullopt;
    Dim value = operands[0];
    if (function == "Add" || function == "Mul" || function == "Max") {
      for (size_t i = 1; i < operands.size(); ++i)
        value = function == "Add" ? value + operands[i] : function == "Mul" ? value * operands[i] : max(value, operands[i]);
      return value;
    }
    if (operands.size() != 2) return std::nullopt;
    if ((function == "FloorDiv" || function == "CleanDiv") && operands[1].positive()) return floor_div(operands[0], operands[1]);
    const auto exponent = operands[1].value();
    if (function != "Pow" || !exponent || *exponent < 1 || *exponent > 8) return std::nullopt;
    for (int64_t i = 1; i < *exponent; ++i) value = value * operands[0];
    return value;
  }

  std::string_view rest_;
  int depth_ = 0;
};

}  // namespace

std::optional<Dim> parse_expression(std::string_view text) { return Expression(text).all(); }

}  // namespace serin::formats::torch
