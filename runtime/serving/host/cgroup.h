// cgroup.h: finds the control groups that limit this process: its own and all above it. Source: cgroups(7).
//
// systemd, a container runtime and an operator may each set limits at a different level.
//
//   for (const std::string& folder : cgroup_folders("memory").v2) ... the smallest folder + "/memory.max" applies ...
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace serin::serving {

struct CgroupFolders {
  std::vector<std::string> v2, v1;  ///< for each version; the process's own group first, the topmost visible group last
};

/// `controller`: "memory" or "cpu"; version 1 has a tree for each. `root`: parent folder of /proc and /sys.
CgroupFolders cgroup_folders(std::string_view controller, const std::string& root = "");

/// Reads a file without a size, such as those in /proc. Empty if it does not exist.
std::string read_proc(const std::string& path);

}  // namespace serin::serving
