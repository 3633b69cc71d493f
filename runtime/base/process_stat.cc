// process_stat.cc: a line is read after its last ')', because the name of a process may have spaces and brackets.

#include "runtime/base/process_stat.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace serin {

double stat_field(const std::string& process, size_t number) {
  std::ifstream file("/proc/" + process + "/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const size_t name_ends = stat.rfind(')');
  if (name_ends == std::string::npos) return 0;
  std::istringstream rest(stat.substr(name_ends + 1));
  std::string field;
  for (size_t i = 3; i <= number; ++i) rest >> field;
  return rest ? std::stod(field) : 0;
}

double cpu_seconds_of(const std::string& process) {
  constexpr size_t kUser = 14, kSystem = 15;
  return (stat_field(process, kUser) + stat_field(process, kSystem)) / ticks_per_second();
}

double ticks_per_second() { return static_cast<double>(::sysconf(_SC_CLK_TCK)); }

}  // namespace serin
