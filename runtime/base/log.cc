// log.cc: writes log lines through spdlog. It is the only file that includes spdlog (3 s of compile time each).
//
// spdlog's patterns quote nothing by themselves, so a message is escaped for its format before it is handed over.

#include "runtime/base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <string>

namespace serin::log {
namespace {

struct State {
  std::shared_ptr<spdlog::logger> logger;
  std::atomic<Level> level{Level::kInfo};
  std::atomic<Format> format{Format::kText};
  std::atomic<Levels> muted{};
  std::atomic<Asked> asked{};
  std::string file;  // set before there are threads
};

// The process has one stderr, so it has one log; everything else in Serin is built by main().
State& state() {
  static State* const instance = [] {
    auto* fresh = new State;  // never destroyed: threads may log while the process ends
    fresh->logger = std::make_shared<spdlog::logger>("serin", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    fresh->logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    fresh->logger->set_level(spdlog::level::trace);
    fresh->logger->flush_on(spdlog::level::trace);
    return fresh;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarning: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
    case Level::kOff: return spdlog::level::off;
  }
  return spdlog::level::info;
}

// Escapes what would end the line or the JSON string. Text keeps its quotes; bytes over 0x7f pass (UTF-8 names are people's names).
std::string escape(std::string_view raw, Format format) {
  constexpr size_t kLongest = 8192;  // a client can put a megabyte into a name; a log line stays a line
  std::string out;
  out.reserve(raw.size() + 8);
  const std::string_view shown = raw.substr(0, kLongest);
  for (size_t i = 0; i < shown.size(); ++i) {
    const char c = shown[i];
    const auto byte = static_cast<unsigned char>(c), next = static_cast<unsigned char>(i + 1 < shown.size() ? shown[i + 1] : '\0');
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {  // control characters, too: U+009B begins a terminal's commands as ESC [ does
      out += fmt::format("\\u{:04x}", next);
      ++i;
    } else if (c == '\n')
      out += "\\n";
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04x}", byte);
    else if (format == Format::kJson && (c == '"' || c == '\\'))
      (out += '\\') += c;
    else
      out += c;
  }
  if (raw.size() > kLongest) out += "...";
  return out;
}

}  // namespace

void configure(const Options& options) {
  State& log = state();
  log.level = options.level;
  log.format = options.format;
  log.logger->set_pattern(options.format == Format::kJson ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":"%v"})"
                                                          : "%Y-%m-%dT%H:%M:%S.%e%z %l %v");
}

Status write_to(const std::string& path, bool stderr_too) {
  State& log = state();
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    if (!stderr_too) log.logger->sinks().clear();
    log.logger->sinks().push_back(std::move(sink));
  } catch (const spdlog::spdlog_ex& e) {
    return Error{Code::kIo, e.what()};
  }
  log.file = path;
  configure(options());  // what is written has one form
  return {};
}

std::string file() { return state().file; }

Options options() { return {.format = state().format, .level = state().level}; }

void mute(Levels levels) { state().muted = levels; }

Levels muted() { return state().muted; }

void set_asked(Asked asked) { state().asked = asked; }

Asked asked() { return state().asked; }

bool enabled(Level level) {
  const State& log = state();
  return level >= log.level.load(std::memory_order_relaxed) && !log.muted.load(std::memory_order_relaxed)[static_cast<size_t>(level)];
}

void write(Level level, fmt::string_view format, fmt::format_args args) {
  State& log = state();
  const std::string message = escape(fmt::vformat(format, args), log.format.load(std::memory_order_relaxed));
  log.logger->log(to_spdlog(level), spdlog::string_view_t(message));
}

}  // namespace serin::log
