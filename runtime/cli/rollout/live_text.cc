// live_text.cc: writes lines over the previous ones. The size of the terminal is read each time, because windows are resized. A line that
// wraps would take two lines, and the next text would start one line too low.

#include "runtime/cli/rollout/live_text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace serin::cli {
namespace {

struct Size {
  size_t columns = 80, rows = 24;
};

Size terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

/// The first `columns` characters; bytes 10xxxxxx go on with the one before.
std::string_view cut(std::string_view line, size_t columns) {
  size_t characters = 0;
  for (size_t i = 0; i < line.size(); ++i)
    if ((static_cast<unsigned char>(line[i]) & 0xC0) != 0x80 && ++characters > columns) return line.substr(0, i);
  return line;
}

}  // namespace

bool LiveText::possible() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && terminal != nullptr && *terminal != '\0' && std::string_view(terminal) != "dumb";
}

void LiveText::show(const std::string& text) {
  constexpr std::string_view kClearDown = "\x1b[J";
  const Size size = terminal_size();
  std::string out = shown_ > 0 ? fmt::format("\x1b[{}A\r", shown_) : "\r";
  out += kClearDown;
  shown_ = 0;
  for (size_t begin = 0; begin < text.size() && shown_ + 1 < size.rows; ++shown_) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out += fmt::format("{}\n", cut(std::string_view(text).substr(begin, end - begin), size.columns - 1));
    begin = end + 1;
  }
  std::fputs(out.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace serin::cli
