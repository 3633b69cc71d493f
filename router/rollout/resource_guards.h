// resource_guards.h: What the canary uses, compared with stable: memory, descriptors, memory of GPUs, CPU time.
//
//   ResourceGuards guards(spec.guard);
//   if (auto verdict = guards.observe(round, weight_ppm, at)) roll_back(*verdict);
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "router/rollout/cpu_guard.h"
#include "router/rollout/leak_guard.h"
#include "router/rollout/resources.h"
#include "router/rollout/spec.h"

namespace serin::rollout {

class ResourceGuards {
 public:
  explicit ResourceGuards(const Guard& guard);

  std::vector<Verdict> observe(const ResourceRound& round, uint32_t weight_ppm, std::chrono::milliseconds at);
  /// Why the steps wait, and of which guard; nothing: they do not.
  std::optional<Verdict> held() const;
  std::vector<ResourceLine> lines() const;

  bool on() const { return on_; }
  template <class Visitor>
  void each(Visitor&& visit) const {
    if (!on_) return;
    for (const LeakGuard& guard : leaks_) visit(guard);
    visit(cpu_);
  }

 private:
  using Known = std::map<uint32_t, ResourceSample>;  // by endpoint
  struct Arms {
    std::vector<const ResourceSample*> samples;
    bool begins = false;  // other endpoints than before, or a restart
    std::optional<CpuSpent> spent;
  };
  Arms read(const ResourceRound& round, Arm arm, double seconds);

  bool on_;
  std::array<LeakGuard, 3> leaks_;
  CpuGuard cpu_;
  std::array<Known, 2> before_;  // by arm
  std::optional<uint32_t> weight_ppm_;
  std::optional<std::chrono::milliseconds> last_at_;
  bool one_process_ = false, any_round_ = false;
};

}  // namespace serin::rollout
