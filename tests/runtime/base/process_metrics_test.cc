// The page says what this process really uses: a number rises where the test uses more of that.

#include "runtime/base/process_metrics.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <ctime>
#include <string>
#include <vector>

namespace serin::metrics {
namespace {

double value(const Registry& registry, const std::string& name) {
  const std::string page = "\n" + registry.render();
  const size_t at = page.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(page.substr(at + name.size() + 2));
}

TEST(ProcessMetrics, FollowWhatTheProcessUses) {
  Registry registry;
  const auto handles = export_process_metrics(registry);

  const double memory = value(registry, "process_resident_memory_bytes");
  constexpr size_t kMore = size_t{64} << 20;
  const std::vector<char> touched(kMore, 1);
  EXPECT_GE(value(registry, "process_resident_memory_bytes"), memory + kMore * 0.9) << touched.size();

  const double descriptors = value(registry, "process_open_fds");
  std::vector<int> opened;
  for (int i = 0; i < 10; ++i) opened.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(value(registry, "process_open_fds"), descriptors + 10);
  for (const int descriptor : opened) close(descriptor);
  EXPECT_GE(value(registry, "process_max_fds"), 64);

  const double cpu = value(registry, "process_cpu_seconds_total");
  const std::clock_t until = std::clock() + CLOCKS_PER_SEC / 5;
  while (std::clock() < until) {
  }
  EXPECT_GE(value(registry, "process_cpu_seconds_total"), cpu + 0.1);

  const double started = value(registry, "process_start_time_seconds");
  EXPECT_NEAR(started, static_cast<double>(std::time(nullptr)), 3600) << "this test has just begun";
  EXPECT_EQ(value(registry, "process_start_time_seconds"), started);
  EXPECT_THAT(registry.render(), testing::HasSubstr("# TYPE process_cpu_seconds_total counter"));
}

}  // namespace
}  // namespace serin::metrics
