#include "runtime/serving/host/host_metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/serving/host/compute_pool.h"

namespace serin::serving {
namespace {

/// Files of a machine with 8 GiB, as a process sees them.
class Granted : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(root_);
    write("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:         1 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, std::string_view text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  size_t memory_mib() const { return granted_memory(root_) >> 20; }
  int cores() const { return granted_cores(root_); }

  const std::filesystem::path root_ = std::filesystem::path(testing::TempDir()) / ("serin_granted_" + std::to_string(::getpid()));
};

TEST_F(Granted, WithoutControlGroupsAllThereIs) {
  EXPECT_EQ(memory_mib(), 8192u);
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(memory_mib(), 8192u);
  EXPECT_EQ(swap_memory(root_), 0u);
  write("proc/meminfo", "MemTotal:        8388608 kB\nSwapCached:      1 kB\nSwapTotal:       2048 kB\n");
  EXPECT_EQ(swap_memory(root_), size_t{2} << 20);
}

TEST_F(Granted, ByTheContainersGroupWhereThatIsTheTopmost) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1073741824\n");
  EXPECT_EQ(memory_mib(), 1024u);
}

TEST_F(Granted, ByTheLeastOfOnesOwnGroupAndThoseAbove) {
  write("proc/self/cgroup", "0::/system.slice/serin.service/main\n");
  write("sys/fs/cgroup/system.slice/serin.service/main/memory.max", "max\n");
  write("sys/fs/cgroup/system.slice/serin.service/memory.max", "536870912\n");
  write("sys/fs/cgroup/system.slice/memory.max", "4294967296\n");
  EXPECT_EQ(memory_mib(), 512u);
  write("sys/fs/cgroup/system.slice/memory.max", "268435456\n");
  EXPECT_EQ(memory_mib(), 256u);
  write("sys/fs/cgroup/other.slice/memory.max", "1048576\n");
  EXPECT_EQ(memory_mib(), 256u) << "of others nothing counts";
}

TEST_F(Granted, InVersion1ByTheTreeForMemory) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/docker/b\n0::/c\n");
  write("sys/fs/cgroup/memory/docker/b/memory.limit_in_bytes", "1073741824\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(memory_mib(), 1024u);
}

TEST_F(Granted, ASeparateTreeIsLookedAtAsFarAsItIsSeen) {
  write("proc/self/cgroup", "0::/../../elsewhere\n");
  write("sys/fs/cgroup/memory.max", "2147483648\n");
  write("elsewhere/memory.max", "1048576\n");
  EXPECT_EQ(memory_mib(), 2048u);
}

TEST_F(Granted, CoresTheSameWay) {
  if (cores() < 2) GTEST_SKIP() << "one core: nothing could be less";
  write("proc/self/cgroup", "0::/a/b\n3:cpu,cpuacct:/x\n");
  write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cores(), 1);
  write("sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_GT(cores(), 1);
  write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "100000\n");
  write("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(), 1);
}

}  // namespace
}  // namespace serin::serving
