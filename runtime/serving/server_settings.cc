#include "runtime/serving/server_settings.h"

#include <fmt/format.h>

#include <array>

#include "runtime/base/log_options.h"

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

Status change(const std::string& key, const FlatValue& value, Switches& on, log::Options& options) {
  const auto* flag = std::get_if<bool>(&value);
  const auto set = [&](bool& which) {
    if (!flag) return Status(invalid(fmt::format("'{}' must be true or false", key)));
    which = *flag;
    return Status();
  };
  if (key == "log_info") return set(on.info);
  if (key == "log_warning") return set(on.warning);
  if (key == "log_error") return set(on.error);
  if (key == "log_verbose_level") {
    const auto* level = std::get_if<int64_t>(&value);
    if (!level || *level < 0 || *level > INT32_MAX) return invalid("'log_verbose_level' must be a whole number, not negative");
    on.verbose = *level > 0;
    return {};
  }
  if (key == "log_format") {
    const auto* format = std::get_if<std::string>(&value);
    if (!format || (*format != "default" && *format != "ISO8601" && *format != "json"))
      return invalid("'log_format' must be default, ISO8601 (both are lines of text whose times are ISO 8601) or json");
    options.format = *format == "json" ? log::Format::kJson : log::Format::kText;
    return {};
  }
  if (key == "log_file")
    return Error{Code::kPermissionDenied, "log_file cannot be changed over the network: the log goes where the server's starter sends it"};
  return invalid(fmt::format("unknown log setting '{}'", key.substr(0, 64)));
}

}  // namespace

FlatValues log_settings() {
  const log::Options now = log::options();
  const Switches on = switches();
  return {{"log_file", log::file()},
          {"log_info", on.info},
          {"log_warning", on.warning},
          {"log_error", on.error},
          {"log_verbose_level", int64_t{on.verbose}},
          {"log_format", now.format == log::Format::kJson ? "json" : "default"}};
}

Status change_log_settings(const FlatValues& changes) {
  log::Options options = log::options();
  Switches on = switches();
  for (const auto& [key, value] : changes) SERIN_CHECK(change(key, value, on, options));
  if (!changes.empty()) set_switches(on, options);
  return {};
}

}  // namespace serin::serving
