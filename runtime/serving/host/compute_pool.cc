#include "runtime/serving/host/compute_pool.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>

#include "runtime/serving/host/cgroup.h"

namespace serin::serving {
namespace {

/// Infinite where there is no limit. Version 2 says "max 100000" or "<quota> <period>" in microseconds; 1 has two files.
double cgroup_quota(const std::string& root) {
  double least = std::numeric_limits<double>::infinity();
  const auto hold = [&](std::istream&& quota, std::istream&& period) {
    double allowed = 0, of = 0;
    if (quota >> allowed && period >> of && allowed > 0 && of > 0) least = std::min(least, allowed / of);
  };
  const CgroupFolders folders = cgroup_folders("cpu", root);
  for (const std::string& folder : folders.v2) {
    std::ifstream both(folder + "/cpu.max");
    std::string quota, period;
    both >> quota >> period;
    hold(std::istringstream(quota), std::istringstream(period));
  }
  for (const std::string& folder : folders.v1)
    hold(std::ifstream(folder + "/cpu.cfs_quota_us"), std::ifstream(folder + "/cpu.cfs_period_us"));
  return least;
}

}  // namespace

int granted_cores(const std::string& root) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency());
  const double quota = std::ceil(cgroup_quota(root));
  return quota < cores ? std::max(static_cast<int>(quota), 1) : std::max(cores, 1);
}

}  // namespace serin::serving
