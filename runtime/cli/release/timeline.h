// timeline.h: shows a release while it runs: a line for each thing that happened, and on a terminal the rollout below it, as it is now.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "runtime/cli/rollout/live_text.h"

namespace serin::cli {

class Timeline {
 public:
  /// `json`: standard output is for one JSON object, so lines go to standard error.
  explicit Timeline(bool json) : json_(json), live_(!json && LiveText::possible()) {}

  void title(const std::string& text) { print(text); }
  void say(std::string_view stage, std::string_view text);
  /// The last words, which a terminal does not cut off.
  void finish(const std::string& text);
  /// Something that changes often: `picture` on a terminal. Elsewhere `line`, where `key` is new or nothing was printed for ten seconds.
  void progress(const std::string& key, std::string_view stage, const std::string& line, const std::string& picture);

 private:
  void print(const std::string& line);
  std::string lines_, last_key_;
  LiveText text_;
  const bool json_, live_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point printed_{};
};

}  // namespace serin::cli
