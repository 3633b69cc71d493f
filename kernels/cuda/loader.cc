// loader.cc: CUDA comes as a plugin, because one program runs with and without it: NVIDIA's libraries are 1.5 GB, half a second to load, and absent where
// there is no GPU. So the driver is asked for first; only where there is one the plugin is opened. It is never closed: kernels hold its code.

#include "kernels/cuda/loader.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

namespace serin::kernels {

namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr const char* kFileName = "libserin_cuda.so";

/// Beside the program, then in ../lib.
std::vector<std::string> candidates() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {kFileName};
  const auto folder = program.parent_path();
  return {folder / kFileName, folder.parent_path() / "lib" / kFileName};
}

/// Null, with the loader's own words in `why`.
void* open_plugin(const std::string& path, std::string& why) {
  if (path.empty() && !dlopen(kDriver, RTLD_LAZY | RTLD_GLOBAL)) {
    why = std::string("no driver: ") + dlerror();
    return nullptr;
  }
  for (const std::string& candidate : path.empty() ? candidates() : std::vector<std::string>{path}) {
    if (void* const library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    why += (why.empty() ? "" : "; ") + std::string(dlerror());
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options, std::string* note) {
  void* const library = open_plugin(options.plugin_path, *note);
  if (!library) return nullptr;
  const auto entry = reinterpret_cast<cuda::PluginEntry>(dlsym(library, cuda::kPluginEntry));
  if (!entry) return *note = dlerror(), nullptr;
  cuda::Opened opened;
  if (!entry(cuda::kPluginVersion, options.device, &opened)) return *note = "the plugin is of another build", nullptr;
  *note = opened.note;
  if (!opened.device) return nullptr;
  return std::make_unique<Backend>("cuda " + opened.device->info().architecture, std::move(opened.table), std::move(opened.device));
}

}  // namespace serin::kernels
