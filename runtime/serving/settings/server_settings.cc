#include "runtime/serving/settings/server_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/log.h"

namespace serin::serving {
namespace {

using log::Level;
using protocol::FlatValue;
using protocol::FlatValues;

/// The threshold and what is muted behind it, told as Triton's switches.
struct Switches {
  bool verbose = false, info = false, warning = false, error = false;
};

Switches switches() {
  return {log::enabled(Level::kDebug), log::enabled(Level::kInfo), log::enabled(Level::kWarning), log::enabled(Level::kError)};
}

void set_switches(const Switches& on, log::Options options) {
  options.level = on.verbose   ? Level::kDebug
                  : on.info    ? Level::kInfo
                  : on.warning ? Level::kWarning
                  : on.error   ? Level::kError
                               : Level::kOff;
  log::Levels muted;
  muted[static_cast<size_t>(Level::kInfo)] = !on.info;
  muted[static_cast<size_t>(Level::kWarning)] = !on.warning;
  muted[static_cast<size_t>(Level::kError)] = !on.error;
  log::mute(muted);
  log::configure(options);
}

Status change(const std::string& key, const FlatValue& value, Switches& on, log::Options& options, log::Asked& asked) {
  const auto* flag = std::get_if<bool>(&value);
  const auto set = [&](bool& which) {
    if (!flag) return Status(Error{Code::kCorrupt, fmt::format("'{}' must be true or false", key)});
    which = *flag;
    return Status();
  };
  if (key == "log_info") return set(on.info);
  if (key == "log_warning") return set(on.warning);
  if (key == "log_error") return set(on.error);
  if (key == "log_verbose_level") {
    const auto* level = std::get_if<int64_t>(&value);
    if (!level || *level < 0) return Error{Code::kCorrupt, "'log_verbose_level' must be a whole number, not negative"};
    if (*level > INT32_MAX) return invalid(fmt::format("'log_verbose_level' must be at most {}", INT32_MAX));
    on.verbose = *level > 0;
    asked.verbosity = static_cast<int32_t>(*level);
    return {};
  }
  if (key == "log_format") {
    const auto* format = std::get_if<std::string>(&value);
    if (!format) return Error{Code::kCorrupt, "'log_format' must be a text"};
    if (*format != "default" && *format != "ISO8601" && *format != "json")
      return invalid("'log_format' must be default, ISO8601 (both are lines of text whose times are ISO 8601) or json");
    options.format = *format == "json" ? log::Format::kJson : log::Format::kText;
    asked.iso8601 = *format == "ISO8601";
    return {};
  }
  if (key == "log_file")
    return Error{Code::kPermissionDenied,
                 "log_file: log file location can not be updated through network protocol, it is where the server's starter sends it"};
  return invalid(fmt::format("unknown log setting '{}'", key.substr(0, 64)));
}

}  // namespace

FlatValues log_settings() {
  const log::Options now = log::options();
  const Switches on = switches();
  const log::Asked asked = log::asked();
  const std::string_view text = asked.iso8601 ? "ISO8601" : "default";
  return {{"log_file", log::file()},
          {"log_info", on.info},
          {"log_warning", on.warning},
          {"log_error", on.error},
          {"log_verbose_level", on.verbose ? std::max(int64_t{1}, int64_t{asked.verbosity}) : 0},
          {"log_format", std::string(now.format == log::Format::kJson ? "json" : text)}};
}

Status change_log_settings(const FlatValues& changes) {
  log::Options options = log::options();
  log::Asked asked = log::asked();
  Switches on = switches();
  for (const auto& [key, value] : changes) SERIN_CHECK(change(key, value, on, options, asked));
  if (changes.empty()) return {};
  log::set_asked(asked);
  set_switches(on, options);
  return {};
}

}  // namespace serin::serving
