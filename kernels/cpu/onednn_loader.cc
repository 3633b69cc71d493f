// onednn_loader.cc: oneDNN comes as a plugin because of OpenMP. libgomp reads its environment while it is loaded, and without
// OMP_WAIT_POLICY=passive its threads spin for milliseconds after every operator: an idle server would burn its cores. In a library that is
// opened at run time there is a moment before loading. It also means that commands which never make a backend (the router) never load it.
//
// The plugin is never closed: kernels hold its code, and OpenMP's threads outlive any call.

#include "kernels/cpu/onednn_loader.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace serin::kernels::onednn {

namespace {

constexpr const char* kFileName = "libserin_onednn.so";

std::vector<std::string> candidates(const std::string& path) {
  if (!path.empty()) return {path};
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {kFileName};
  const auto folder = program.parent_path();
  return {folder / kFileName, folder.parent_path() / "lib" / kFileName};
}

/// The user's own choice stands.
void make_idle_threads_sleep() {
  if (!std::getenv("GOMP_SPINCOUNT")) setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
}

}  // namespace

Loaded load(const CpuOptions& options, const cpu::Simd& simd) {
  if (options.onednn_path == "none") return {{}, "no oneDNN: not wanted"};
  make_idle_threads_sleep();

  void* library = nullptr;
  std::string reason;
  for (const std::string& path : candidates(options.onednn_path)) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    reason += (reason.empty() ? "" : "; ") + std::string(dlerror());
  }
  if (!library) return {{}, "no oneDNN: " + reason};

  const auto entry = reinterpret_cast<PluginEntry>(dlsym(library, kPluginEntry));
  if (!entry) return {{}, "no oneDNN: " + std::string(dlerror())};
  Loaded loaded;
  if (!entry(kPluginVersion, options.isa, simd, &loaded.plugin)) return {{}, "no oneDNN: the plugin is of another build"};
  loaded.note = loaded.plugin.library;
  return loaded;
}

}  // namespace serin::kernels::onednn
