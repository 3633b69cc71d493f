// devices.h: finds the accelerators of this machine and chooses among them for a model.
//
//   Devices devices(/*plugin_path=*/"", /*tactics_folder=*/"", registry);
//   SERIN_TRY(const Devices::Choice choice, devices.choose(*parse_device("auto")));   // no backends: the CPU; see choice.why
//   for (const kernels::Backend* backend : choice.backends) ... LoadOptions{.device = backend}
//
// The devices are listed when the first model requests one, because the driver and NVIDIA's libraries cost half a second and 200 MB. Each
// is opened when a model may run on it, because a context and the libraries' handles cost hundreds of megabytes of its memory.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"

namespace serin::kernels {
class CudaDevices;
}

namespace serin::engine {

/// The device that a model is configured for.
struct DeviceChoice {
  enum class Kind : uint8_t { kCpu, kCuda, kAuto } kind = Kind::kCpu;
  std::optional<int> index;  ///< index among the devices that the driver shows; nothing: all of them

  friend bool operator==(const DeviceChoice&, const DeviceChoice&) = default;
};
/// Parses "cpu", "cuda", "cuda:1" or "auto" (CUDA if there is a device, else the CPU).
std::optional<DeviceChoice> parse_device(std::string_view text);
std::string print_device(const DeviceChoice& device);

/// Thread-safe. It must outlive every model that runs on one of the devices.
class Devices {
 public:
  /// `plugin_path`: path of libserin_cuda.so; empty: next to the program, if there is a driver. `tactics_folder`:
  /// cache_folder().
  Devices(std::string plugin_path, std::string tactics_folder, metrics::Registry& metrics);
  ~Devices();

  struct Choice {
    std::vector<const kernels::Backend*> backends;  ///< the device with the most free memory first; none: the CPU
    std::string why;                                ///< "NVIDIA H200 (GPU-4f6c...)", "auto: no cuda: no driver: libcuda.so.1: ..."
  };
  /// Lost devices are left out. kUnavailable if CUDA is requested and absent, or if every present device is lost: then `auto` does not
  /// choose the CPU either.
  Result<Choice> choose(const DeviceChoice& wanted);
  /// Whether some device has not ended a run for `limit`. It is lost from then on, and threads that wait for it may never continue.
  bool hang(std::chrono::milliseconds limit);

 private:
  struct Slot;

  void list();
  /// Null if it cannot be opened: then its `why` has the reason. The first call opens it.
  const kernels::Backend* open(Slot& slot);

  const std::string plugin_path_, tactics_folder_;
  metrics::Registry& metrics_;
  std::once_flag once_;
  std::atomic<bool> listed_ = false;
  // Written once, by list(), before listed_ is true.
  std::unique_ptr<const kernels::CudaDevices> cuda_;
  std::vector<std::unique_ptr<Slot>> slots_;   // in the driver's order
  std::vector<std::shared_ptr<void>> gauges_;  // they look into slots
};

/// "NVIDIA H200 (GPU-4f6c...)"
std::string name_of(const kernels::Backend& backend);

}  // namespace serin::engine
