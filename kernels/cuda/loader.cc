// loader.cc: loads CUDA as a plugin, because one program runs with and without it. NVIDIA's libraries are 1.5 GB, take half a second to
// load, and are absent where there is no GPU. So the driver is looked for first, and the plugin is opened only where there is one. It is
// never closed, because kernels use its code.

#include "kernels/cuda/loader.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <utility>
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

/// Null, with the reason in `why`.
cuda::PluginEntry find_entry(const std::string& path, std::string& why) {
  void* const library = open_plugin(path, why);
  if (!library) return nullptr;
  const auto entry = reinterpret_cast<cuda::PluginEntry>(dlsym(library, cuda::kPluginEntry));
  if (!entry) why = dlerror();
  return entry;
}

/// Without a device the note says why.
cuda::Opened open(cuda::PluginEntry entry, const cuda::Options& options) {
  cuda::Opened opened;
  if (!entry(cuda::kPluginVersion, options, &opened)) opened.note = "the plugin is of another build";
  return opened;
}

std::unique_ptr<Backend> backend_of(cuda::Opened opened) {
  if (!opened.device) return nullptr;
  return std::make_unique<Backend>("cuda " + opened.device->info().architecture, std::move(opened.table), std::move(opened.device));
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options, std::string* note) {
  const cuda::PluginEntry entry = find_entry(options.plugin_path, *note);
  if (!entry) return nullptr;
  cuda::Opened opened = open(entry, options.device);
  *note = opened.note;
  return backend_of(std::move(opened));
}

CudaDevices::CudaDevices(CudaOptions options) : options_(std::move(options)) {
  entry_ = find_entry(options_.plugin_path, why_);
  if (!entry_) return;
  cuda::Options listing = options_.device;
  listing.device = cuda::Options::kList;
  cuda::Opened opened = serin::kernels::open(entry_, listing);
  listed_ = std::move(opened.listed);
  why_ = opened.note;
}

std::unique_ptr<Backend> CudaDevices::open(int index, std::string* note) const {
  cuda::Options one = options_.device;
  one.device = index;
  cuda::Opened opened = serin::kernels::open(entry_, one);
  *note = opened.note;
  return backend_of(std::move(opened));
}

}  // namespace serin::kernels
