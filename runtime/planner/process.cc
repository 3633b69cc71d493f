// process.cc: reads /proc/self/status; of systems that have none, both are 0.

#include "runtime/planner/process.h"

#include <fstream>
#include <string>

namespace serin::planner {

Resident resident() {
  Resident now;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const auto kilobytes = [&] { return std::stoull(line.substr(line.find(':') + 1)) << 10; };
    if (line.starts_with("RssAnon:") || line.starts_with("RssShmem:")) now.own += kilobytes();
    if (line.starts_with("RssFile:")) now.files = kilobytes();
  }
  return now;
}

}  // namespace serin::planner
