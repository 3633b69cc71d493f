#include "runtime/serving/host/cgroup.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <ranges>
#include <sstream>

namespace serin::serving {
namespace {

/// The folder and all above it. A group that is not below what is mounted here ("/../x") shows the topmost alone.
std::vector<std::string> folder_and_above(const std::string& mount, std::string group) {
  if (group.find("/..") != std::string::npos) group.clear();
  std::vector<std::string> folders;
  for (; group.size() > 1; group.resize(group.rfind('/'))) folders.push_back(mount + group);
  folders.push_back(mount);
  return folders;
}

}  // namespace

std::string read_proc(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

CgroupFolders cgroup_folders(std::string_view controller, const std::string& root) {
  std::string v2, v1;
  std::istringstream groups(read_proc(root + "/proc/self/cgroup"));  // lines of "number:controllers:/path"; of version 2 "0::/path"
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    if (!path.starts_with('/')) continue;
    const auto controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (controllers.empty()) v2 = path;
    if (std::ranges::any_of(controllers | std::views::split(','), [&](const auto& one) { return std::ranges::equal(one, controller); }))
      v1 = path;
  }
  const std::string mount = root + "/sys/fs/cgroup";
  return {.v2 = folder_and_above(mount, v2), .v1 = folder_and_above(mount + "/" + std::string(controller), v1)};
}

}  // namespace serin::serving
