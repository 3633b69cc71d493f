// resource_guards.cc: a round becomes one level for each arm and resource, the mean of its endpoints, and the CPU time spent since the last.
//
// Endpoints that did not answer, came or went, and processes that restarted are not compared with what was before: the trend begins anew.

#include "router/rollout/resource_guards.h"

#include <algorithm>

#include "router/rollout/alpha_budget.h"

namespace serin::rollout {
namespace {

using Value = std::optional<double> ResourceSample::*;

struct Resource {
  const char* name;
  const char* text;
  bool bytes;
  Value value, most;
  double least_rise, least_part;
};
constexpr double kMiB = 1 << 20;
constexpr Resource kResources[] = {
    {"res_memory", "memory", true, &ResourceSample::memory, nullptr, 4 * kMiB, 0.08},
    {"res_descriptors", "open descriptors", false, &ResourceSample::descriptors, &ResourceSample::most_descriptors, 32, 0.25},
    {"res_gpu", "GPU memory", true, &ResourceSample::gpu, &ResourceSample::most_gpu, 16 * kMiB, 0.08},
};
constexpr double kShare = kResourceShare / 4;

LeakGuard make(const Guard& guard, size_t index) {
  const Resource& resource = kResources[index];
  const std::optional<double> limits[] = {guard.resources.memory_limit, guard.resources.descriptor_limit, guard.resources.gpu_limit};
  return LeakGuard({.name = resource.name,
                    .text = resource.text,
                    .bytes = resource.bytes,
                    .trip_value = trip_value(guard.false_rollback, kShare),
                    .limit = limits[index],
                    .least_rise = resource.least_rise,
                    .least_part = resource.least_part,
                    .horizon = guard.resources.horizon});
}

bool restarted(const ResourceSample& before, const ResourceSample& now) {
  return !same_start(before.started, now.started) || now.cpu_seconds.value_or(0) < before.cpu_seconds.value_or(0) ||
         now.requests < before.requests;
}

/// Whether every endpoint of the arm answered.
bool is_whole(const ResourceRound& round, Arm arm, size_t asked) {
  return asked > 0 && static_cast<size_t>(std::ranges::count(round.samples, arm, &ResourceSample::arm)) == asked;
}

/// Nothing unless every endpoint says it.
std::optional<ResourceLevel> level(const std::vector<const ResourceSample*>& samples, const Resource& resource) {
  if (samples.empty()) return std::nullopt;
  ResourceLevel level;
  const auto count = static_cast<double>(samples.size());
  for (const ResourceSample* sample : samples) {
    if (!(sample->*resource.value)) return std::nullopt;
    level.value += *(sample->*resource.value) / count;
    level.answers += sample->requests / count;
    if (resource.most == nullptr) continue;
    if (const auto most = sample->*resource.most; most && *most > 0) level.most = std::min(*most, level.most.value_or(*most));
  }
  return level;
}

}  // namespace

ResourceGuards::ResourceGuards(const Guard& guard)
    : on_(guard.resources.on),
      leaks_{make(guard, 0), make(guard, 1), make(guard, 2)},
      cpu_(guard.resources.cpu_ratio, trip_value(guard.false_rollback, kShare)) {}

ResourceGuards::Arms ResourceGuards::read(const ResourceRound& round, Arm arm, double seconds) {
  Arms now;
  for (const ResourceSample& sample : round.samples)
    if (sample.arm == arm) now.samples.push_back(&sample);
  Known& before = before_[static_cast<size_t>(arm)];
  CpuSpent spent{.endpoints = static_cast<uint32_t>(now.samples.size())};
  bool says = true;
  for (const ResourceSample* sample : now.samples) {
    const auto known = before.find(sample->endpoint);
    const bool goes_on = known != before.end() && !restarted(known->second, *sample);
    now.begins = now.begins || !goes_on;
    says = says && sample->cpu_seconds && goes_on && known->second.cpu_seconds;
    if (!says) continue;
    spent.cpu_seconds += *sample->cpu_seconds - *known->second.cpu_seconds;
    spent.requests += sample->requests - known->second.requests;
    spent.idle_known = spent.idle_known && sample->idle_cpu;
    spent.idle_seconds += sample->idle_cpu.value_or(0) * seconds;
  }
  now.begins = now.begins || before.size() != now.samples.size();
  if (says) now.spent = spent;
  before.clear();
  for (const ResourceSample* sample : now.samples) before.emplace(sample->endpoint, *sample);
  return now;
}

std::vector<Verdict> ResourceGuards::observe(const ResourceRound& round, uint32_t weight_ppm, std::chrono::milliseconds at) {
  std::vector<Verdict> verdicts;
  if (!on_) return verdicts;
  any_round_ = true;
  one_process_ = round.one_process;
  if (one_process_) return verdicts;
  const double seconds = last_at_ ? std::chrono::duration<double>(at - *last_at_).count() : 0;
  // Both or none: what one arm spent in two rounds is not to be compared with what the other spent in one.
  if (!is_whole(round, Arm::kCanary, round.asked_canary) || !is_whole(round, Arm::kStable, round.asked_stable)) return verdicts;
  Arms canary = read(round, Arm::kCanary, seconds);
  const Arms stable = read(round, Arm::kStable, seconds);
  last_at_ = at;
  canary.begins = canary.begins || weight_ppm != weight_ppm_;
  weight_ppm_ = weight_ppm;
  for (size_t i = 0; i < leaks_.size(); ++i) {
    auto of_canary = level(canary.samples, kResources[i]), of_stable = level(stable.samples, kResources[i]);
    if (of_canary) of_canary->begins = canary.begins;
    if (of_stable) of_stable->begins = stable.begins;
    if (leaks_[i].observe(of_canary, of_stable, at)) verdicts.push_back(leaks_[i].verdict());
  }
  const auto says = [](const ResourceSample* sample) { return sample->cpu_seconds.has_value(); };
  cpu_.note_exports(std::ranges::all_of(canary.samples, says), std::ranges::all_of(stable.samples, says));
  if (cpu_.observe(canary.spent, stable.spent, at)) verdicts.push_back(cpu_.verdict());
  return verdicts;
}

std::optional<Verdict> ResourceGuards::held() const {
  for (const LeakGuard& guard : leaks_)
    if (!guard.held().empty()) return Verdict{guard.name(), guard.held()};
  if (const std::string why = cpu_.held(); !why.empty()) return Verdict{cpu_.name(), why};
  return std::nullopt;
}

std::vector<ResourceLine> ResourceGuards::lines() const {
  std::vector<ResourceLine> lines;
  each([&](const auto& guard) { lines.push_back(guard.line()); });
  for (ResourceLine& line : lines) {
    if (!any_round_) line.note = "not judged: not measured yet";
    if (one_process_) line.note = "not judged: both versions run in one process";
  }
  return lines;
}

}  // namespace serin::rollout
