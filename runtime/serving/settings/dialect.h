// dialect.h: selects the server that Serin imitates where servers differ: status codes, defaults, permissions.
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
/// Names for `--as` and argv[0].
inline constexpr std::array<std::string_view, 6> kDialectNames = {"serin", "tritonserver", "tensorflow_model_server",
                                                                  "ovms",  "paddle",       "kserve"};

inline constexpr std::string_view kReloadPath = "/v1/config/reload";

/// Path of the admin request that such a server accepts from every client at its ports; empty: none.
constexpr std::string_view order_of_clients(Dialect dialect) {
  if (dialect == Dialect::kTfServing) return "/tensorflow.serving.ModelService/HandleReloadConfigRequest";
  return dialect == Dialect::kOvms ? kReloadPath : "";
}

constexpr std::optional<Dialect> parse_dialect(std::string_view name) {
  for (size_t i = 0; i < kDialectNames.size(); ++i)
    if (kDialectNames[i] == name) return static_cast<Dialect>(i);
  return std::nullopt;
}

/// Changes the code of an error for Triton's dialect if Triton's code depends on the request; use_triton_status() handles the others.
/// `result`: a Status or a Result.
template <class T>
T in_dialect(Dialect dialect, T result, std::initializer_list<Code> own, Code tritons) {
  if (result || dialect != Dialect::kTriton || std::ranges::find(own, result.error().code) == own.end()) return result;
  return Error{tritons, result.error().message};
}

}  // namespace serin::serving
