#include "runtime/engine/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "kernels/cuda/loader.h"
#include "kernels/device.h"
#include "runtime/base/cache_folder.h"
#include "runtime/base/log.h"
#include "runtime/base/number.h"
#include "runtime/engine/device/gpu_metrics.h"

namespace serin::engine {

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

Devices::Devices(std::string plugin_path, std::string tactics_folder, metrics::Registry& metrics)
    : plugin_path_(std::move(plugin_path)), tactics_folder_(std::move(tactics_folder)), metrics_(metrics) {}
Devices::~Devices() = default;

void Devices::open() {
  backends_ =
      kernels::make_cuda_backends({.device = {.tactics_folder = cache_folder(tactics_folder_)}, .plugin_path = plugin_path_}, &note_);
  std::vector<kernels::Device*> devices;
  for (const auto& backend : backends_)
    if (backend) devices.push_back(backend->device());
  if (devices.empty()) return;
  log::info("cuda: {}", note_);
  gauges_.push_back(export_gpu_metrics(devices, metrics_));
  for (const kernels::Device* device : devices) {
    const auto lost = [device] { return device->lost() ? 1.0 : 0.0; };
    gauges_.push_back(
        metrics_.gauge_callback("serin_device_lost", "1: no more work until the process ends", {{"gpu_uuid", device->info().id}}, lost));
  }
  open_ = true;
}

bool Devices::hang(std::chrono::milliseconds limit) {
  bool any = false;
  for (size_t i = 0; open_ && i < backends_.size(); ++i) {
    if (!backends_[i]) continue;
    kernels::Device& device = *backends_[i]->device();
    const bool was_lost = device.lost().has_value();
    if (!device.hangs(limit)) continue;
    if (!was_lost) log::error("{} is lost: {}", name_of(*backends_[i]), *device.lost());
    any = true;
  }
  return any;
}

Result<Devices::Choice> Devices::choose(const DeviceChoice& wanted) {
  if (wanted.kind == DeviceChoice::Kind::kCpu) return Choice{};
  std::call_once(opened_, [this] { open(); });

  Choice choice;
  bool found = false;
  std::string missing = note_;
  for (size_t i = 0; i < backends_.size(); ++i) {
    if (wanted.index && *wanted.index != static_cast<int>(i)) continue;
    if (!backends_[i]) continue;
    found = true;
    const kernels::Device& device = *backends_[i]->device();
    if (const kernels::Fault fault = device.lost())
      missing = fmt::format("{} is lost: {}", name_of(*backends_[i]), *fault);
    else
      choice.backends.push_back(backends_[i].get());
  }
  if (choice.backends.empty()) {
    if (wanted.index && *wanted.index >= static_cast<int>(backends_.size()) && !backends_.empty())
      missing = fmt::format("the driver shows {}", backends_.size());
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

std::string name_of(const kernels::Backend& backend) {
  const kernels::Device::Info& info = backend.device()->info();
  return fmt::format("{} ({})", info.name, info.id);
}

}  // namespace serin::engine
