// fault_on_demand.cc: loaded before all else (LD_PRELOAD) into a program that uses a device, it breaks the device under it once the file that SERIN_FAULT_FILE
// names is there: a kernel of its own writes where nothing is. From then on every call of the driver in that process fails, as after a broken kernel of ours.
//
// The file begins with the number of the device. Nothing of CUDA is needed to build this: it asks the driver that is there.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace {

/// Writes to address 16; for every device since sm_75.
constexpr char kFaultKernel[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry fault() {
  .reg .b64 %at;
  .reg .b32 %value;
  mov.u64 %at, 16;
  mov.u32 %value, 1;
  st.global.u32 [%at], %value;
  ret;
}
)";

/// A function of the driver: what they answer is 0 or an error.
template <class... A>
int ask(void* driver, const char* name, A... arguments) {
  const auto function = reinterpret_cast<int (*)(A...)>(::dlsym(driver, name));
  const int status = function ? function(arguments...) : -1;
  if (status != 0) std::fprintf(stderr, "fault_on_demand: %s: %d\n", name, status);
  return status;
}

void break_device(int index) {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) {
    std::fprintf(stderr, "fault_on_demand: %s\n", ::dlerror());
    return;
  }
  int device = 0;
  void *context = nullptr, *module = nullptr, *kernel = nullptr, *stream = nullptr;
  constexpr unsigned kNonBlocking = 1;
  const bool ready = ask(driver, "cuInit", 0U) == 0 && ask(driver, "cuDeviceGet", &device, index) == 0 &&
                     ask(driver, "cuDevicePrimaryCtxRetain", &context, device) == 0 && ask(driver, "cuCtxSetCurrent", context) == 0 &&
                     ask(driver, "cuModuleLoadData", &module, static_cast<const void*>(kFaultKernel)) == 0 &&
                     ask(driver, "cuModuleGetFunction", &kernel, module, "fault") == 0 &&
                     ask(driver, "cuStreamCreate", &stream, kNonBlocking) == 0;
  if (!ready) return;
  ask(driver, "cuLaunchKernel", kernel, 1U, 1U, 1U, 1U, 1U, 1U, 0U, stream, static_cast<void**>(nullptr), static_cast<void**>(nullptr));
  ask(driver, "cuStreamSynchronize", stream);
}

void wait_for(const char* path) {
  constexpr useconds_t kPause = 20'000;
  for (;; ::usleep(kPause)) {
    std::ifstream file(path);
    if (int device = 0; file >> device) return break_device(device);
  }
}

[[maybe_unused]] const bool kStarted = [] {
  if (const char* const path = std::getenv("SERIN_FAULT_FILE")) std::thread(wait_for, path).detach();
  return true;
}();

}  // namespace
