#include "router/rollout/slice_guards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "router/rollout/alpha_budget.h"

namespace serin::rollout {
namespace {

using std::chrono::milliseconds;

double missing(const Evidence& line) { return line.bits_to_trip - line.bits; }

std::string among(const std::string& title, const Unit& unit) {
  return fmt::format("{}, among requests of {}", at_share(unit.share), title);
}

}  // namespace

SliceGuards::SliceGuards(const Guard& guard, bool sticky) : guard_(guard), sticky_(sticky) {
  for (const Slice& slice : guard.slices) groups_.push_back({slice, {}});
}

std::unique_ptr<SliceGuards::Class> SliceGuards::make_class(const Slice& slice, const std::string& value) const {
  const std::string title = fmt::format("{}={}", slice.name, value);
  const auto name = [&](std::string_view question) { return fmt::format("slice:{}:{}", title, question); };
  const auto trip = [&](double share) { return trip_value(guard_.false_rollback, class_share(guard_, share)); };
  return std::make_unique<Class>(Class{
      .value = value,
      .title = title,
      .failures = EventGuard(name("errors"), guard_.tolerate_ratio, trip(kErrorShare)),
      .latency = RankComparison(guard_, name("latency"), trip(kLatencyShare), Baseline()),
      .answers = ThresholdGuard({.name = name("shadow"),
                                 .text = fmt::format("other answers than stable's in more than {:.4g} %", 100 * guard_.max_disagreement),
                                 .p0 = guard_.max_disagreement,
                                 .trip_value = trip(kShadowShare),
                                 .ask_stable = false})});
}

/// Null: it has no class, is the first of its class, or comes after kMostClasses others.
SliceGuards::Class* SliceGuards::find(const Group& group, const std::string& value) {
  const auto found = std::ranges::find(group.classes, value, [](const auto& one) -> const std::string& { return one->value; });
  return found != group.classes.end() ? found->get() : nullptr;
}

void SliceGuards::name(const Classes& classes) {
  if (!classes) return;
  for (size_t i = 0; i < std::min(groups_.size(), classes->size()); ++i) {
    const std::string& value = (*classes)[i];
    Group& group = groups_[i];
    if (!value.empty() && group.classes.size() < kMostClasses && find(group, value) == nullptr)
      group.classes.push_back(make_class(group.slice, value));
  }
}

template <class Visitor>
void SliceGuards::visit_classes(const Classes& classes, Visitor&& visit) {
  if (!classes) return;
  for (size_t i = 0; i < std::min(groups_.size(), classes->size()); ++i)
    if (Class* one = find(groups_[i], (*classes)[i])) visit(*one);
}

void SliceGuards::learn(const Observation& observation, milliseconds at) {
  if (!sticky_) visit_classes(observation.classes, [&](Class& one) { one.latency.learn(observation, at); });
}

void SliceGuards::not_good(const Observation& observation, bool warm, milliseconds at) {
  if (!sticky_) visit_classes(observation.classes, [&](Class& one) { one.latency.not_good(observation, warm, at); });
}

std::optional<Verdict> SliceGuards::compare(const Observation& observation, const Unit& unit, bool warm, milliseconds at) {
  std::optional<Verdict> verdict;
  if (sticky_) return verdict;
  visit_classes(observation.classes, [&](Class& one) {
    if (one.latency.compare(observation, unit, warm, at)) verdict = one.latency.guard().verdict(among(one.title, unit));
  });
  return verdict;
}

std::optional<Verdict> SliceGuards::failed(const Observation& observation, const Unit& unit, milliseconds at) {
  std::optional<Verdict> verdict;
  visit_classes(observation.classes, [&](Class& one) {
    if (one.failures.observe(observation.arm, unit, at)) verdict = one.failures.verdict(among(one.title, unit));
  });
  return verdict;
}

std::optional<Verdict> SliceGuards::differs(const ShadowPair& pair, milliseconds at) {
  std::optional<Verdict> verdict;
  visit_classes(pair.classes, [&](Class& one) {
    if (one.answers.observe(Arm::kCanary, pair.mismatch, Unit(0.5), /*alone=*/true, at)) verdict = one.answers.verdict();
  });
  return verdict;
}

std::vector<Evidence> SliceGuards::evidence() const {
  std::vector<Evidence> lines;
  for (const Group& group : groups_) {
    std::array<std::optional<Evidence>, 3> nearest;
    for (const auto& one : group.classes) {
      const std::array<Evidence, 3> all{one->failures.evidence(), one->latency.guard().evidence(), one->answers.evidence()};
      for (size_t i = 0; i < all.size(); ++i)
        if (!nearest[i] || missing(all[i]) < missing(*nearest[i])) nearest[i] = all[i];
    }
    for (auto& line : nearest)
      if (line) lines.push_back(*std::move(line));
  }
  return lines;
}

}  // namespace serin::rollout
