// devices.h: the accelerators of this machine, as models ask for them.
//
//   Devices devices(/*plugin_path=*/"", /*tactics_folder=*/"", registry);
//   SERIN_TRY(const Devices::Choice choice, devices.choose(*parse_device("auto")));     // choice.backends is empty: the CPU, and choice.why says why
//   for (const kernels::Backend* backend : choice.backends) ... LoadOptions{.device = backend}
//
// Opened when the first model asks for one: the driver and NVIDIA's libraries take half a second and 200 MB, of which a server of CPU models has no use.
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

namespace serin::engine {

/// Where a model runs.
struct DeviceChoice {
  enum class Kind : uint8_t { kCpu, kCuda, kAuto } kind = Kind::kCpu;
  std::optional<int> index;  ///< of the devices that the driver shows; nothing: all of them

  friend bool operator==(const DeviceChoice&, const DeviceChoice&) = default;
};
/// "cpu", "cuda", "cuda:1" or "auto" (CUDA where there is a device, else the CPU).
std::optional<DeviceChoice> parse_device(std::string_view text);
std::string print_device(const DeviceChoice& device);

/// Thread-safe. Outlives every model that runs on one of them.
class Devices {
 public:
  /// `plugin_path`: of libserin_cuda.so; empty: beside the program, where there is a driver. `tactics_folder`: as kernels::tactics_folder() takes it.
  Devices(std::string plugin_path, std::string tactics_folder, metrics::Registry& metrics);
  ~Devices();

  struct Choice {
    std::vector<const kernels::Backend*> backends;  ///< the one with the most free memory first; none: the CPU
    std::string why;                                ///< "NVIDIA H200 (GPU-4f6c...)", "auto: no cuda: no driver: libcuda.so.1: ..."
  };
  /// Devices that are lost are left out. kUnavailable where cuda is wanted and not there, or all that is there is lost: then the CPU is not what `auto` means.
  Result<Choice> choose(const DeviceChoice& wanted);
  /// Whether one of them has not ended a run for `limit`: it is lost from then on, and who waits for it may wait for ever.
  bool hang(std::chrono::milliseconds limit);

 private:
  void open();

  const std::string plugin_path_, tactics_folder_;
  metrics::Registry& metrics_;
  std::once_flag opened_;
  std::atomic<bool> open_ = false;
  // Written once, by open(), before it is true.
  std::vector<std::unique_ptr<kernels::Backend>> backends_;  // as the driver counts; null: it does not open
  std::string note_;
  std::vector<std::shared_ptr<void>> gauges_;
};

/// "NVIDIA H200 (GPU-4f6c...)"
std::string name_of(const kernels::Backend& backend);

}  // namespace serin::engine
