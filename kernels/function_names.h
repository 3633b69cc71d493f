// function_names.h: The functions of single elements as models name them, from the rows of functions.def.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string_view>

#include "kernels/functions.h"

namespace serin::kernels {

/// The attribute of a node that gives a function its alpha or beta, and the value without it.
struct Parameter {
  std::string_view attribute;  ///< empty: the function has no such parameter
  double otherwise;
};

struct NamedUnary {
  UnaryFn fn;
  std::string_view word;  ///< of the operator, and of an activation; empty for Identity
  Parameter alpha, beta;
  bool follows;  ///< a convolution or product may apply it before it stores its result
};

namespace function_rows {
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr Parameter kAbsent{{}, 0};
constexpr Parameter parameter(std::string_view attribute, double otherwise) { return {attribute, otherwise}; }
enum class Epilogue { kFollows, kAlone };

inline constexpr auto kUnary = std::to_array<NamedUnary>({
#define SERIN_UNARY(name, word, alpha, beta, epilogue, ...) \
  {UnaryFn::k##name, word, alpha, beta, Epilogue::k##epilogue == Epilogue::kFollows},
#include "kernels/functions.def"
});
inline constexpr auto kBinary = std::to_array<std::string_view>({
#define SERIN_BINARY(name, ...) #name,
#include "kernels/functions.def"
});
}  // namespace function_rows

/// Null for an unknown word.
constexpr const NamedUnary* find_unary(std::string_view word) {
  for (const NamedUnary& row : function_rows::kUnary) {
    if (row.word == word) return &row;
  }
  return nullptr;
}

constexpr std::optional<BinaryFn> find_binary(std::string_view name) {
  for (size_t i = 0; i < function_rows::kBinary.size(); ++i) {
    if (function_rows::kBinary[i] == name) return static_cast<BinaryFn>(i);
  }
  return std::nullopt;
}

}  // namespace serin::kernels
