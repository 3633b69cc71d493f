#include "runtime/cli/release/timeline.h"

#include <fmt/format.h>

#include <cstdio>

namespace serin::cli {
namespace {

constexpr std::chrono::seconds kSilent{10};

}  // namespace

void Timeline::print(const std::string& line) {
  lines_ += line + "\n";
  printed_ = std::chrono::steady_clock::now();
  if (live_) return text_.show(lines_);
  std::FILE* const out = json_ ? stderr : stdout;
  std::fprintf(out, "%s\n", line.c_str());
  std::fflush(out);
}

void Timeline::finish(const std::string& text) {
  std::fprintf(json_ ? stderr : stdout, "%s\n", text.c_str());
  std::fflush(json_ ? stderr : stdout);
}

void Timeline::say(std::string_view stage, std::string_view text) {
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begun_;
  print(fmt::format("{:8.1f} s  {:<9} {}", since.count(), stage, text));
}

void Timeline::progress(const std::string& key, std::string_view stage, const std::string& line, const std::string& picture) {
  const bool changed = key != last_key_;
  last_key_ = key;
  if (live_) return text_.show(lines_ + "\n" + picture);
  if (changed || std::chrono::steady_clock::now() - printed_ >= kSilent) say(stage, line);
}

}  // namespace serin::cli
