// plan_device.cc: the part of planning that only a device needs: which steps stay there, the copies, and the constants that lie in its memory.

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "kernels/device_weights.h"
#include "runtime/engine/placement.h"
#include "runtime/engine/plan.h"
#include "runtime/engine/verify_program.h"

namespace serin::engine {

Status Plan::place_on_device(const Context& context, std::vector<Status>& statuses) {
  std::vector<bool> on_device;
  for (const PreparedStep& step : steps) on_device.push_back(step.kernel && step.memory == Memory::kDevice);
  const std::vector<bool> wanted = on_device;
  keep_islands_on_host(program, on_device);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (on_device[i] == wanted[i]) continue;
    steps[i] = {};
    statuses[i] = prepare_step(i, context, Where::kHost);
  }
  if (std::ranges::find(on_device, true) == on_device.end()) return {};

  std::vector<PreparedStep> prepared = std::exchange(steps, {});
  const std::vector<Status> known = std::exchange(statuses, {});
  const std::vector<int> origin = engine::place(program, on_device);
  SERIN_CHECK(verify(program));
  for (size_t i = 0; i < origin.size(); ++i) {
    if (origin[i] >= 0) {
      steps.push_back(std::move(prepared[static_cast<size_t>(origin[i])]));
      statuses.push_back(known[static_cast<size_t>(origin[i])]);
      continue;
    }
    steps.emplace_back();
    const bool transfer = std::holds_alternative<kernels::Transfer>(program.steps[i].kernel);
    statuses.push_back(prepare_step(i, context, transfer ? Where::kDevice : Where::kHost));
  }
  return {};
}

/// One copy for all plans of the model.
Status Plan::upload_constants(const Context& context) try {
  uploaded.resize(program.tensors.size());
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    const Tensor& tensor = program.tensors[i];
    if (!tensor.constant || tensor.memory == Memory::kHost || !reads_constant[i] || tensor.constant->bytes() == 0) continue;
    const size_t bytes = tensor.constant->bytes();
    uploaded[i] = context.device_weights->get(tensor.constant->id, "plain", bytes, [&](std::byte* to) {
      const auto data = tensor.constant->data();
      std::memcpy(to, data.get(), bytes);
    });
  }
  return {};
} catch (const kernels::DeviceLost& lost) {
  return Error{Code::kUnavailable, lost.what()};
} catch (const std::bad_alloc&) {
  const kernels::Device& device = *context.device->device();
  return Error{Code::kTooLarge, "the weights do not fit " + device.info().name + ", which has " + std::to_string(device.free_bytes()) +
                                    " bytes free of " + std::to_string(device.info().memory_bytes)};
}

}  // namespace serin::engine
