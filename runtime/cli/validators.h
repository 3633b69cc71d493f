// validators.h: checks of flag values that CLI11 lacks.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "runtime/base/number.h"

namespace serin::cli {

/// CLI::Range would accept NaN, which is neither below nor above the limits.
inline CLI::Validator between(double least, double most) {
  const auto check = [=](std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return std::string();
    return fmt::format("{} is not a number from {} to {}", text, least, most);
  };
  return CLI::Validator(check, fmt::format("FLOAT in [{} - {}]", least, most));
}

/// Converts seconds as users write them, for example 0.5.
inline std::chrono::milliseconds milliseconds(double seconds) { return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)); }

/// Adds a flag for a port number, or for the word that means no port.
inline CLI::Option* add_port(CLI::App& command, const std::string& flag, std::optional<uint16_t>& port, const std::string& help,
                             const std::string& none = "off") {
  const auto read = [&port, flag, none](const std::string& text) {
    if (text == none) return port.reset();
    port = parse_number<uint16_t>(text);
    if (!port) throw CLI::ValidationError(flag, fmt::format("{} is not a port: 0 to 65535, or {}", text, none));
  };
  return command.add_option_function<std::string>(flag, read, help)->default_str(port ? std::to_string(*port) : none);
}

}  // namespace serin::cli
