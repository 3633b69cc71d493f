// plan_device.cc: the part of planning that only a device needs. It chooses types and layouts that suit the device, decides which steps
// stay there, and adds the copies and the constants in its memory.

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/engine/layout/channels_last.h"
#include "runtime/engine/layout/narrow_floats.h"
#include "runtime/engine/layout/placement.h"
#include "runtime/engine/plan.h"
#include "runtime/engine/program/verify_program.h"

namespace serin::engine {

/// Types and layouts that its kernels are fast with.
Status Plan::suit_device(const Context& context) {
  context.device->device()->make_current();
  const bool narrow = context.precision == Precision::kFp16 || context.precision == Precision::kBf16;
  const auto takes = [&context](const kernels::OpDesc& desc) {
    kernels::PackedWeights weights;
    kernels::PrepareContext prepare_context{&weights, context.threads};
    return context.device->prepare(desc, prepare_context).kernel != nullptr;
  };
  bool changed =
      narrow && narrow_floats(program, context.precision == Precision::kFp16 ? DType::kFloat16 : DType::kBFloat16, *context.forms, takes);
  changed = (context.channels_last && put_channels_last(program, *context.forms)) || changed;
  return changed ? verify(program) : Status();
}

Status Plan::place_on_device(const Context& context, std::vector<Status>& statuses) {
  std::vector<bool> on_device;
  on_device.reserve(steps.size());
  for (const PreparedStep& step : steps) on_device.push_back(step.kernel && step.memory == Memory::kDevice);
  const std::vector<bool> wanted = on_device;
  keep_islands_on_host(program, on_device);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (on_device[i] == wanted[i]) continue;
    steps[i] = {};
    statuses[i] = prepare_step(i, context, Where::kHost);
    steps[i].refusals.insert(steps[i].refusals.begin(), {"device", "its operands and its readers are on the host"});
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

/// One copy for all plans of the model. What is asked for is uploaded before the first executor is made (model_device.cc).
void Plan::ask_for_constants(const Context& context) {
  device_constants.resize(program.tensors.size());
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    const graph::ConstantPtr& constant = program.tensors[i].constant;
    if (!constant || program.tensors[i].memory == Memory::kHost || !reads_constant[i] || constant->bytes() == 0) continue;
    device_constants[i] = context.device_weights->get_plain(constant->id, constant->bytes(), [constant](std::byte* to) {
      const auto data = constant->data();
      std::memcpy(to, data.get(), constant->bytes());
    });
  }
}

}  // namespace serin::engine
