// slice_guards.h: Tests each class of requests by itself, for a canary that is worse only for some of them.
//
// A slice divides the requests by something that each says before the draw: a header, a field of its JSON, its size. The share of the canary is
// then the same in every class, so each test of all requests is as valid for a class. A slice by label divides mirrored requests only, by
// stable's answer.
//
//   SliceGuards slices(guard, sticky);
//   if (auto verdict = slices.failed(observation, unit, at)) roll_back(*verdict);
//
// A class begins with the request that first names it, which is not yet evidence. The first kMostClasses classes of a slice are judged, and each
// pays its part of alpha (alpha_budget.h), whether or not it ever comes.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "router/rollout/event_guard.h"
#include "router/rollout/rank_comparison.h"
#include "router/rollout/spec.h"
#include "router/rollout/threshold_guard.h"

namespace serin::rollout {

class SliceGuards {
 public:
  SliceGuards(const Guard& guard, bool sticky);

  /// After everything else about this request: from now on its classes are judged, up to kMostClasses of each slice.
  void name(const Classes& classes);
  /// As RankComparison, for the classes of the request. Nothing where requests stick to an arm.
  void learn(const Observation& observation, std::chrono::milliseconds at);
  void not_good(const Observation& observation, bool warm, std::chrono::milliseconds at);
  /// One unit's good answer, of an endpoint that is not cold.
  std::optional<Verdict> compare(const Observation& observation, const Unit& unit, bool warm, std::chrono::milliseconds at);
  /// One unit's failure, of any kind.
  std::optional<Verdict> failed(const Observation& observation, const Unit& unit, std::chrono::milliseconds at);
  /// A pair that the user asked for (not a spare one).
  std::optional<Verdict> differs(const ShadowPair& pair, std::chrono::milliseconds at);

  /// Of each slice and question, the class with the least evidence missing.
  std::vector<Evidence> evidence() const;
  template <class Visitor>
  void each(Visitor&& visit) const {
    for (const Group& group : groups_)
      for (const auto& one : group.classes) {
        visit(one->failures);
        visit(one->latency.guard());
        visit(one->answers);
      }
  }

 private:
  struct Class {
    std::string value, title;  // "de", "country=de"
    EventGuard failures;
    RankComparison latency;
    ThresholdGuard answers;
  };
  struct Group {
    Slice slice;
    std::vector<std::unique_ptr<Class>> classes;
  };
  static Class* find(const Group& group, const std::string& value);
  std::unique_ptr<Class> make_class(const Slice& slice, const std::string& value) const;
  template <class Visitor>
  void visit_classes(const Classes& classes, Visitor&& visit);

  Guard guard_;
  bool sticky_;
  std::vector<Group> groups_;
};

}  // namespace serin::rollout
