// dialect.h: whose clients and operators the server pleases where servers differ: status codes, defaults, who may ask what.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::serving {

enum class Dialect : uint8_t { kSerin, kTriton, kTfServing, kOvms, kPaddle, kKserve };
/// As `--as` and argv[0] name them.
inline constexpr std::array<std::string_view, 6> kDialectNames = {"serin", "tritonserver", "tensorflow_model_server",
                                                                  "ovms",  "paddle",       "kserve"};

inline constexpr std::string_view kReloadPath = "/v1/config/reload";

/// The order that such a server takes from everybody who reaches its ports; empty: none.
constexpr std::string_view order_of_clients(Dialect dialect) {
  if (dialect == Dialect::kTfServing) return "/tensorflow.serving.ModelService/HandleReloadConfigRequest";
  return dialect == Dialect::kOvms ? kReloadPath : "";
}

constexpr std::optional<Dialect> parse_dialect(std::string_view name) {
  for (size_t i = 0; i < kDialectNames.size(); ++i)
    if (kDialectNames[i] == name) return static_cast<Dialect>(i);
  return std::nullopt;
}

/// Where an error has another code in Triton's place that depends on what was asked; use_triton_status() knows those that do not. `result`: a Status or a Result.
template <class T>
T in_dialect(Dialect dialect, T result, std::initializer_list<Code> own, Code tritons) {
  if (result || dialect != Dialect::kTriton || std::ranges::find(own, result.error().code) == own.end()) return result;
  return Error{tritons, result.error().message};
}

}  // namespace serin::serving
