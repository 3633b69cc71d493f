// Pages as exporters write them, and as they should not.

#include "router/proxy/metrics_page.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>

namespace serin::router {
namespace {

std::optional<double> read(std::string_view page, std::string_view name) {
  const std::array names = {name};
  return read_metrics(page, names)[0];
}

TEST(MetricsPage, ReadsWhatExportersWrite) {
  constexpr std::string_view kPage = R"(# HELP process_open_fds Number of open file descriptors.
# TYPE process_open_fds gauge
process_open_fds 12
process_resident_memory_bytes 1.5e+08 1700000000000
gpu{gpu_uuid="a}\" 5",kind="x"} 100
gpu{gpu_uuid="b"}	20
process_cpu_seconds_total 3.25)";
  EXPECT_EQ(read(kPage, "process_open_fds"), 12);
  EXPECT_EQ(read(kPage, "process_resident_memory_bytes"), 1.5e8);
  EXPECT_EQ(read(kPage, "gpu"), 120) << "all labels";
  EXPECT_EQ(read(kPage, "process_cpu_seconds_total"), 3.25) << "the last line may have no end";
  EXPECT_EQ(read(kPage, "process_open"), std::nullopt);
  EXPECT_EQ(read(kPage, "gpu_uuid"), std::nullopt);
  EXPECT_EQ(read(kPage, ""), std::nullopt) << "off";
  const std::array<std::string_view, 2> both = {"process_cpu_seconds_total", "process_open_fds"};
  EXPECT_THAT(read_metrics(kPage, both), testing::ElementsAre(3.25, 12.0));
}

TEST(MetricsPage, SkipsWhatItDoesNotUnderstand) {
  for (const char* page :
       {"", "\n\n", "a", "a ", "a NaN", "a +Inf", "a x", "a{", "a{b=\"c", "a{b=\"\\\"} 1", "{} 1", "a b 1", "<html>a 1</html>"})
    EXPECT_EQ(read(page, "a"), std::nullopt) << page;
  EXPECT_EQ(read("a 1\r\n", "a"), 1);
  EXPECT_EQ(read(std::string_view("a 1\0b", 5), "a"), std::nullopt);
}

}  // namespace
}  // namespace serin::router
