// runner_device.cc: runs the steps of a device. The host runs ahead of them and waits only where it needs a result.
//
// Kernels cannot end a run when an index is out of range, so the run ends when all steps are finished: the first step of a run clears the
// fault in the device's memory, the last one copies it to the host.
//
// The first run enqueues step by step: libraries load their code then. The second records each segment, and from then on a segment is one call. Where a step's
// result is sized by the data, its segment ends with the copy that brings the size, and the host waits. Steps with operands of such a size are enqueued in every
// run: a record has the sizes of the run that made it.
//
// A call that the driver refuses (no memory for a launch, say) fails its run alone. Whether the device is lost it says itself, once it has been waited for
// (Runner::failed_on_device).

#include <algorithm>
#include <utility>

#include "runtime/engine/plan/runner.h"

namespace serin::engine {

namespace {

Error refused(const std::string& fault) { return Error{Code::kInternal, "the device refused the run: " + fault}; }

}  // namespace

void Runner::find_segments() {
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (!calls_[i].on_device) continue;
    const bool sized = is_sized(calls_[i]);
    const bool goes_on = !segments_.empty() && segments_.back().last + 1 == i && segments_.back().sized == sized;
    if (!goes_on || calls_[i - 1].brings_sizes) segments_.push_back({i, i, sized});
    segments_.back().last = i;
  }
}

/// Whether a size that the data decided before reaches it.
bool Runner::is_sized(const Call& call) const {
  const size_t first_output = call.first_input + call.inputs;  // what it decides itself it writes to the bound
  const auto begin = resizes_.begin() + static_cast<std::ptrdiff_t>(call.first_resize);
  return std::any_of(begin, begin + static_cast<std::ptrdiff_t>(call.resizes),
                     [&](const Resize& resize) { return resize.operand < first_output || !call.decides_sizes; });
}

Status Runner::enqueue(const Segment& segment, bool timed) {
  const auto mark = [&](size_t number) {
    const kernels::Fault fault = timed ? device_.queue->mark(number) : kernels::Fault();
    return fault ? Status(refused(*fault)) : Status();
  };
  if (&segment == &segments_.front()) {
    if (kernels::Fault fault = device_.queue->clear(device_.fault, sizeof(kernels::DeviceFault))) return refused(*fault);
  }
  for (size_t i = segment.first; i <= segment.last; ++i) {
    SERIN_CHECK(mark(i));
    SERIN_CHECK(run_step(i));
  }
  SERIN_CHECK(mark(segment.last + 1));
  if (&segment == &segments_.back()) {
    if (kernels::Fault fault = device_.queue->copy(device_.fault_on_host, device_.fault, sizeof(kernels::DeviceFault)))
      return refused(*fault);
  }
  return {};
}

Status Runner::run_segment(Segment& segment, bool timed) {
  pending_ = true;
  auto& way = segment.ways[timed];
  if (way.recording) {
    const kernels::Fault fault = device_.queue->replay(*way.recording);
    return fault ? Status(refused(*fault)) : Status();
  }
  if (segment.sized || ++way.runs != 2) return enqueue(segment, timed);  // what could not be recorded stays as it is

  if (device_.queue->begin_recording()) return enqueue(segment, timed);
  // What fails here may have failed because of the recording alone (a library that allocates on the way): without it, it is seen whether the step works.
  const Status recorded = enqueue(segment, timed);
  kernels::Fault unrecorded;
  way.recording = device_.queue->end_recording(unrecorded);
  if (!recorded) way.recording.reset();
  return way.recording ? run_segment(segment, timed) : enqueue(segment, timed);
}

/// By the device's clock: the host's would count starting and awaiting each step, which many steps are shorter than.
Status Runner::add_times(const Segment& segment, std::span<int64_t> step_ns) {
  SERIN_CHECK(finish_device());
  for (size_t i = segment.first; i <= segment.last; ++i) {
    int64_t nanoseconds = 0;
    if (kernels::Fault fault = device_.queue->time_between(i, i + 1, nanoseconds)) return refused(*fault);
    step_ns[i] += nanoseconds;
  }
  return {};
}

Error Runner::failed_on_device(Error error) {
  static_cast<void>(finish_device());  // a run that failed leaves nothing under way; it is here, too, that a lost device is noticed
  const kernels::Fault lost = device_.device->lost();
  return lost ? Error{Code::kUnavailable, "the device is lost: " + *lost} : std::move(error);
}

Status Runner::finish_device() {
  if (!std::exchange(pending_, false)) return {};
  if (kernels::Fault fault = device_.queue->finish()) return refused(*fault);
  const kernels::DeviceFault found = std::exchange(*device_.fault_on_host, {});
  if (found.step == 0) return {};
  const auto step = static_cast<size_t>(found.step) - 1;
  return Error{Code::kInvalidArgument, plan_.program.steps[step].label() + ": " + calls_[step].kernel->explain(found.detail)};
}

}  // namespace serin::engine
