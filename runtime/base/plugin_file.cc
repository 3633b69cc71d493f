#include "runtime/base/plugin_file.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "runtime/base/file.h"

namespace serin {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOwnNamesFirst = 0;  // sanitizers want their own malloc() everywhere
#else
constexpr int kOwnNamesFirst = RTLD_DEEPBIND;
#endif

std::vector<std::string> plugin_candidates(const PluginFile& wanted) {
  if (!wanted.path.empty()) return {wanted.path};
  const std::string folder = program_folder();
  return {folder + "/" + wanted.file, folder + "/../lib/" + wanted.file};
}

}  // namespace

Result<void*> plugin_entry(const PluginFile& wanted) {
  std::vector<std::string> reasons;
  for (const std::string& candidate : plugin_candidates(wanted)) {
    void* const library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | (wanted.own_names_first ? kOwnNamesFirst : 0));
    if (!library) {
      reasons.emplace_back(dlerror());
      continue;
    }
    void* const entry = dlsym(library, wanted.entry);
    if (!entry) return Error{Code::kNotFound, fmt::format("{} is no plugin of Serin: {}", candidate, dlerror())};
    return entry;
  }
  return Error{Code::kNotFound, fmt::format("{}: {}", wanted.missing, fmt::join(reasons, "; "))};
}

}  // namespace serin
