// output_guards.cc: labels and scores are no bad events in themselves; what is asked is whether their mix differs between the arms. "The answer is
// c" is an event that both arms have, so the attribution argument of event_process.cc holds for it in both directions: too often on the canary with
// a tolerated ratio of `drift`, and, with the arms changed over, too often on stable. Small changes are what a new model is for.
//
// Only labels that stable gives to at least 2 % are asked about: a model that has learnt a rare class gives it ten times as often, rightly. One that
// has collapsed shows by the frequent ones that are gone.

#include "router/rollout/output_guards.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "router/rollout/alpha_budget.h"

namespace serin::rollout {
namespace {

constexpr double kFormShare = 0.05, kScoreShare = 0.02, kLabelShare = 0.06;  // kOutputShare together, two scores
constexpr size_t kMostLabels = 20;
constexpr double kRarestLabel = 0.02;
constexpr double kTail = 0.05, kThinnestTail = 0.01;  // scores that are all alike have no tail to speak of

static_assert(kFormShare + 2 * kScoreShare + kLabelShare <= kOutputShare + 1e-12);

}  // namespace

OutputGuards::OutputGuards(const Guard& guard)
    : wanted_(guard.compare != Guard::Compare::kOff),
      drift_(guard.drift),
      alpha_(guard.false_rollback),
      form_("out_form", guard.tolerate_ratio, trip_value(alpha_, kFormShare)) {}

std::optional<Verdict> OutputGuards::observe(const Observation& observation, const Unit& unit, std::chrono::milliseconds at) {
  const Output& output = *observation.output;
  if (!wanted_ || output.form == 0) return std::nullopt;
  if (!judged()) {
    if (observation.arm == Arm::kStable) learn(output);
    return std::nullopt;
  }
  if (!unit.representative) return std::nullopt;
  auto counted = gate_.pass(observation, unit.weighed(output.weight_ppm), /*bad=*/true);
  if (!counted) return std::nullopt;
  counted->count = 1;

  const Arm arm = observation.arm;
  if (!is_known(output.form) && form_.observe(arm, *counted, at)) return tripped(form_, "the outputs are others than stable's");
  if (!output.label) return std::nullopt;
  if (score_high_ && output.score > high_ && score_high_->observe(arm, *counted, at))
    return tripped(*score_high_, fmt::format("scores lie above stable's p95 ({:.4g}) more than {:g} times as often", high_, drift_));
  if (score_low_ && output.score < low_ && score_low_->observe(arm, *counted, at))
    return tripped(*score_low_, fmt::format("scores lie below stable's p5 ({:.4g}) more than {:g} times as often", low_, drift_));
  const auto label = std::ranges::find(labels_, *output.label, &LabelGuards::label);
  if (label == labels_.end()) return std::nullopt;
  if (label->often.observe(arm, *counted, at))
    return tripped(label->often, fmt::format("label {} comes more than {:g} times as often as from stable", label->label, drift_));
  Unit exact = *counted;  // mirrored, a share that is too high would be the unsafe side
  exact.share = exact.unbiased_share();
  if (label->rarely.observe(arm, exact, at))
    return tripped(label->rarely, fmt::format("label {} comes less than {:.3g} times as often as from stable", label->label, 1 / drift_));
  return std::nullopt;
}

void OutputGuards::learn(const Output& output) {
  learnt_.push_back(output);
  if (learnt_.size() == kLearnt) freeze();
}

void OutputGuards::freeze() {
  for (const Output& output : learnt_) forms_.push_back(output.form);
  std::ranges::sort(forms_);
  forms_.erase(std::unique(forms_.begin(), forms_.end()), forms_.end());
  if (drift_ == 0) return;
  freeze_labels();
  freeze_scores();
}

bool OutputGuards::is_known(uint64_t form) const { return std::ranges::binary_search(forms_, form); }

void OutputGuards::freeze_labels() {
  std::map<uint32_t, size_t> counts;
  for (const Output& output : learnt_)
    if (output.label) ++counts[*output.label];
  std::vector<std::pair<size_t, uint32_t>> frequent;
  for (const auto& [label, count] : counts)
    if (static_cast<double>(count) >= kRarestLabel * kLearnt) frequent.emplace_back(count, label);
  std::ranges::sort(frequent, std::greater());
  if (frequent.size() > kMostLabels) frequent.resize(kMostLabels);
  const double trip = trip_value(alpha_, kLabelShare / static_cast<double>(2 * std::max<size_t>(frequent.size(), 1)));
  for (const auto& [count, label] : frequent)
    labels_.push_back({label, EventGuard(fmt::format("out_label_{}_often", label), drift_, trip),
                       EventGuard(fmt::format("out_label_{}_rarely", label), drift_, trip, /*mirrored=*/true)});
}

void OutputGuards::freeze_scores() {
  std::vector<double> scores;
  for (const Output& output : learnt_)
    if (output.label) scores.push_back(output.score);
  if (scores.size() < kLearnt / 2) return;
  std::ranges::sort(scores);
  const auto tail = static_cast<size_t>(kTail * static_cast<double>(scores.size()));
  low_ = scores[tail];
  high_ = scores[scores.size() - 1 - tail];
  const auto thinnest = static_cast<ptrdiff_t>(kThinnestTail * static_cast<double>(scores.size()));
  const double trip = trip_value(alpha_, kScoreShare);
  if (scores.end() - std::ranges::upper_bound(scores, high_) >= thinnest) score_high_.emplace("out_score_high", drift_, trip);
  if (std::ranges::lower_bound(scores, low_) - scores.begin() >= thinnest) score_low_.emplace("out_score_low", drift_, trip);
}

std::optional<Verdict> OutputGuards::tripped(const EventGuard& guard, const std::string& what) const {
  const Evidence evidence = guard.evidence();
  return Verdict{guard.name(), fmt::format("{}: {}: {} of {} such answers were the canary's; e-value 2^{:.1f} over 2^{:.1f}", guard.name(),
                                           what, evidence.canary_events, evidence.canary_events + evidence.stable_events, evidence.bits,
                                           evidence.bits_to_trip)};
}

std::vector<const EventGuard*> OutputGuards::guards() const {
  std::vector<const EventGuard*> all{&form_};
  if (score_high_) all.push_back(&*score_high_);
  if (score_low_) all.push_back(&*score_low_);
  for (const LabelGuards& label : labels_) {
    all.push_back(&label.often);
    all.push_back(&label.rarely);
  }
  return all;
}

std::vector<Evidence> OutputGuards::evidence() const {
  if (!wanted_) return {};
  std::vector<Evidence> lines{form_.evidence()};
  if (score_high_) lines.push_back(score_high_->evidence());
  if (score_low_) lines.push_back(score_low_->evidence());
  std::optional<Evidence> nearest;
  for (const LabelGuards& label : labels_)
    for (const EventGuard* guard : {&label.often, &label.rarely})
      if (const Evidence evidence = guard->evidence(); !nearest || evidence.bits > nearest->bits) nearest = evidence;
  if (!nearest) return lines;
  nearest->guard = "out_label";
  lines.push_back(*nearest);
  return lines;
}

}  // namespace serin::rollout
