#include "runtime/engine/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

#include "kernels/cuda/loader.h"
#include "kernels/device.h"
#include "runtime/base/cache_folder.h"
#include "runtime/base/log.h"
#include "runtime/base/number.h"
#include "runtime/engine/device/gpu_metrics.h"

namespace serin::engine {

namespace {

std::string name_of(const kernels::Device::Info& info) { return fmt::format("{} ({})", info.name, info.id); }

}  // namespace

std::optional<DeviceChoice> parse_device(std::string_view text) {
  using Kind = DeviceChoice::Kind;
  if (text == "cpu") return DeviceChoice{Kind::kCpu, {}};
  if (text == "auto") return DeviceChoice{Kind::kAuto, {}};
  if (text == "cuda") return DeviceChoice{Kind::kCuda, {}};
  constexpr std::string_view kPrefix = "cuda:";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  const auto index = parse_number<int>(text);
  if (!index || *index < 0) return std::nullopt;
  return DeviceChoice{Kind::kCuda, index};
}

std::string print_device(const DeviceChoice& device) {
  if (device.index) return "cuda:" + std::to_string(*device.index);
  return device.kind == DeviceChoice::Kind::kCpu ? "cpu" : device.kind == DeviceChoice::Kind::kCuda ? "cuda" : "auto";
}

/// A device that the driver shows.
struct Devices::Slot {
  explicit Slot(int number) : index(number) {}

  const int index;
  std::once_flag once;
  std::unique_ptr<kernels::Backend> backend;       ///< written once
  std::atomic<kernels::Device*> device = nullptr;  ///< of `backend`, for those who open nothing
  std::string why;                                 ///< it does not open
};

Devices::Devices(std::string plugin_path, std::string tactics_folder, metrics::Registry& metrics)
    : plugin_path_(std::move(plugin_path)), tactics_folder_(std::move(tactics_folder)), metrics_(metrics) {}
Devices::~Devices() = default;

void Devices::list() {
  cuda_ = std::make_unique<const kernels::CudaDevices>(
      kernels::CudaOptions{.device = {.tactics_folder = cache_folder(tactics_folder_)}, .plugin_path = plugin_path_});
  const std::vector<kernels::Device::Info>& shown = cuda_->listed();
  for (size_t i = 0; i < shown.size(); ++i) {
    const Slot& slot = *slots_.emplace_back(std::make_unique<Slot>(static_cast<int>(i)));
    if (shown[i].id.empty()) continue;
    const auto lost = [&slot] {
      const kernels::Device* const device = slot.device;
      return device && device->lost() ? 1.0 : 0.0;
    };
    gauges_.push_back(
        metrics_.gauge_callback("serin_device_lost", "1: no more work until the process ends", {{"gpu_uuid", shown[i].id}}, lost));
  }
  if (!shown.empty()) gauges_.push_back(export_gpu_metrics(shown, metrics_));
  listed_ = true;
}

const kernels::Backend* Devices::open(Slot& slot) {
  std::call_once(slot.once, [&] {
    std::string note;
    slot.backend = cuda_->open(slot.index, &note);
    log::info("cuda:{}: {}", slot.index, note);
    if (!slot.backend) slot.why = note;
    slot.device = slot.backend ? slot.backend->device() : nullptr;
  });
  return slot.backend.get();
}

bool Devices::hang(std::chrono::milliseconds limit) {
  bool any = false;
  if (!listed_) return false;
  for (const auto& slot : slots_) {
    kernels::Device* const device = slot->device;
    if (!device) continue;
    const bool was_lost = device->lost().has_value();
    if (!device->hangs(limit)) continue;
    if (!was_lost) log::error("{} is lost: {}", name_of(device->info()), *device->lost());
    any = true;
  }
  return any;
}

Result<Devices::Choice> Devices::choose(const DeviceChoice& wanted) {
  if (wanted.kind == DeviceChoice::Kind::kCpu) return Choice{};
  std::call_once(once_, [this] { list(); });

  Choice choice;
  bool found = false;
  std::string missing = cuda_->why();
  for (const auto& slot : slots_) {
    if (wanted.index && *wanted.index != slot->index) continue;
    const kernels::Backend* const backend = open(*slot);
    if (!backend) {
      if (!found) missing += (missing.empty() ? "" : "; ") + slot->why;
      continue;
    }
    found = true;
    if (const kernels::Fault fault = backend->device()->lost())
      missing = fmt::format("{} is lost: {}", name_of(*backend), *fault);
    else
      choice.backends.push_back(backend);
  }
  if (choice.backends.empty()) {
    if (wanted.index && *wanted.index >= static_cast<int>(slots_.size()) && !slots_.empty())
      missing = fmt::format("the driver shows {}", slots_.size());
    if (wanted.kind == DeviceChoice::Kind::kCuda || found)
      return Error{Code::kUnavailable, fmt::format("device {}: {}", print_device(wanted), missing)};
    choice.why = "auto: no cuda: " + missing;
    return choice;
  }
  const auto free = [](const kernels::Backend* backend) { return backend->device()->free_bytes(); };
  std::ranges::stable_sort(choice.backends, std::greater<>(), free);
  for (const kernels::Backend* backend : choice.backends) choice.why += (choice.why.empty() ? "" : ", ") + name_of(*backend);
  return choice;
}

std::string name_of(const kernels::Backend& backend) { return name_of(backend.device()->info()); }

}  // namespace serin::engine
