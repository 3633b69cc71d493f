// run_time.cc: compiles kernels with NVRTC, and loads the result as a library of the CUDA runtime.

#include "kernels/cuda/nvidia/run_time.h"

#include <dlfcn.h>
#include <nvrtc.h>

#include <iterator>
#include <utility>

#include "kernels/cuda/fault.h"
#include "kernels/cuda/nvidia/embedded_headers.h"

namespace serin::kernels::cuda {

namespace {

/// Asks NVRTC for one of the texts it has of a program.
template <class Size, class Get>
std::string text_of(nvrtcProgram program, Size size_of, Get get) {
  size_t size = 0;
  if (size_of(program, &size) != NVRTC_SUCCESS) return "";
  std::string text(size, '\0');
  if (size == 0 || get(program, text.data()) != NVRTC_SUCCESS) return "";
  return text;
}

std::string first_line_with(const std::string& text, const char* word) {
  const size_t at = text.find(word);
  if (at == std::string::npos) return text.substr(0, text.find('\n'));
  const size_t begin = text.rfind('\n', at) + 1;  // npos + 1 is 0
  return text.substr(begin, text.find('\n', at) - begin);
}

}  // namespace

void open_run_time_compiler() {
  Dl_info self;
  if (!::dladdr(reinterpret_cast<const void*>(&nvrtcVersion), &self) || !self.dli_fname) return;
  int major = 0, minor = 0;
  nvrtcVersion(&major, &minor);
  const std::string path = self.dli_fname, folder = path.substr(0, path.rfind('/') + 1);
  ::dlopen((folder + "libnvrtc-builtins.so." + std::to_string(major) + "." + std::to_string(minor)).c_str(), RTLD_NOW | RTLD_GLOBAL);
}

std::string run_time_compiler_version() {
  int major = 0, minor = 0;
  nvrtcVersion(&major, &minor);
  return "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
}

std::optional<std::string> compile_at_run_time(const std::string& text, const std::string& architecture, std::string& why,
                                               std::string* log) {
  nvrtcProgram program = nullptr;
  nvrtcResult result =
      nvrtcCreateProgram(&program, text.c_str(), "run_time.cu", std::size(kEmbeddedHeaderNames), kEmbeddedHeaders, kEmbeddedHeaderNames);
  std::optional<std::string> code;
  if (result == NVRTC_SUCCESS) {
    const std::string target = "--gpu-architecture=" + architecture;
    std::vector<const char*> options = {target.c_str(), "--std=c++20", "-default-device"};  // there is no host
    if (log) options.push_back("--ptxas-options=-v");
    result = nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
    const std::string said = text_of(program, nvrtcGetProgramLogSize, nvrtcGetProgramLog);
    if (log) *log = said;
    if (result == NVRTC_SUCCESS)
      code = text_of(program, nvrtcGetCUBINSize, nvrtcGetCUBIN);
    else
      why = std::string(nvrtcGetErrorString(result)) + ": " + first_line_with(said, "error");
    nvrtcDestroyProgram(&program);
  } else {
    why = nvrtcGetErrorString(result);
  }
  if (code && code->empty()) {
    why = "the compiler made no machine code for " + architecture;
    code.reset();
  }
  return code;
}

RunTimeKernels::RunTimeKernels(std::string architecture, const std::string& folder, const std::string& scope)
    : architecture_(std::move(architecture)), files_(folder, scope + ", " + architecture_ + ", " + run_time_compiler_version()) {}

RunTimeKernels::~RunTimeKernels() {
  for (const auto& [text, loaded] : loaded_) {
    if (loaded.library) cudaLibraryUnload(loaded.library);
  }
}

RunTimeKernels::Loaded RunTimeKernels::make(const std::string& text) const {
  Loaded made;
  std::optional<std::string> code = files_.find(text);
  const bool kept = code.has_value();
  if (!kept) code = compile_at_run_time(text, architecture_, made.why);
  if (!code) return made;
  if (Fault fault = fault_of(cudaLibraryLoadData(&made.library, code->data(), nullptr, nullptr, 0, nullptr, nullptr, 0))) {
    cudaGetLastError();  // it is this text's alone
    return {nullptr, *fault};
  }
  if (!kept) files_.keep(text, *code);
  return made;
}

std::vector<const void*> RunTimeKernels::load(const std::string& text, const std::vector<const char*>& names, std::string& why) {
  const MutexLock lock(mutex_);
  auto found = loaded_.find(text);
  if (found == loaded_.end()) found = loaded_.emplace(text, make(text)).first;
  const Loaded& loaded = found->second;
  if (!loaded.library) {
    why = loaded.why;
    return {};
  }
  std::vector<const void*> kernels;
  for (const char* const name : names) {
    cudaKernel_t kernel = nullptr;
    cudaFuncAttributes attributes;
    Fault fault = fault_of(cudaLibraryGetKernel(&kernel, loaded.library, name));
    // Loads it now: it may be launched for the first time while a graph is recorded.
    if (!fault) fault = fault_of(cudaFuncGetAttributes(&attributes, static_cast<const void*>(kernel)));
    if (fault) {
      cudaGetLastError();
      why = std::string(name) + ": " + *fault;
      return {};
    }
    kernels.push_back(kernel);
  }
  return kernels;
}

}  // namespace serin::kernels::cuda
