// dialect.h: whose clients and operators the server pleases where servers differ: status codes, defaults, who may ask what.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

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

}  // namespace serin::serving
