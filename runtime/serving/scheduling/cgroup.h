// cgroup.h: where the limits stand that hold for this process: those of its control group and of all above it, which systemd, a container's runtime and
// an operator set each at a place of their own.
//
//   for (const std::string& folder : cgroup_folders("memory").v2) ... the least of folder + "/memory.max" holds ...
//
// Source: cgroups(7).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace serin::serving {

struct CgroupFolders {
  std::vector<std::string> v2, v1;  ///< of each version; the process's own first, the topmost that is seen from here last
};

/// `controller`: "memory", "cpu": version 1 has a tree for each. `root`: where /proc and /sys are.
CgroupFolders cgroup_folders(std::string_view controller, const std::string& root = "");

/// Of a file that has no size, as those of /proc have none. Empty where there is none.
std::string read_proc(const std::string& path);

}  // namespace serin::serving
