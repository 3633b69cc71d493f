#include "runtime/base/cache_folder.h"

#include <cstdlib>

namespace serin {

std::string cache_folder(const std::string& asked) {
  if (!asked.empty()) return asked == "none" ? "" : asked;
  const auto absolute = [](const char* variable) -> std::string {
    const char* const value = std::getenv(variable);
    return value && value[0] == '/' ? value : "";
  };
  if (const std::string cache = absolute("XDG_CACHE_HOME"); !cache.empty()) return cache + "/serin";
  const std::string home = absolute("HOME");
  return home.empty() ? "" : home + "/.cache/serin";
}

}  // namespace serin
