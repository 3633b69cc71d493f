// validators.h: what the command line checks of a flag's value and CLI11 has no word for.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "runtime/base/number.h"

namespace serin::cli {

/// CLI::Range would let NaN through, which is neither below nor above.
inline CLI::Validator between(double least, double most) {
  const auto check = [=](std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return std::string();
    return fmt::format("{} is not a number from {} to {}", text, least, most);
  };
  return CLI::Validator(check, fmt::format("FLOAT in [{} - {}]", least, most));
}

/// Of seconds as users write them: 0.5.
inline std::chrono::milliseconds milliseconds(double seconds) { return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)); }

/// A port's number, or the word that stands for none.
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
