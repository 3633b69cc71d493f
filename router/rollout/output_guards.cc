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
constexpr double kOddForms = 0.01;  // answers of the canary that may look like nothing that stable has ever said
constexpr double kMostOften = 0.9;
constexpr double kTail = 0.05, kThinnestTail = 0.01;  // scores that are all alike have no tail to speak of

static_assert(kFormShare + 2 * kScoreShare + kLabelShare <= kOutputShare + 1e-12);

}  // namespace

OutputGuards::OutputGuards(const Guard& guard)
    : wanted_(guard.compare != Guard::Compare::kOff),
      drift_(guard.drift),
      alpha_(guard.false_rollback),
      form_(this->guard("out_form", "outputs that stable never had", kOddForms, kFormShare, guard.tolerate_ratio)) {}

ThresholdGuard OutputGuards::guard(std::string name, std::string text, double p0, double share, double tolerated_ratio, bool seldom) const {
  return ThresholdGuard({.name = std::move(name),
                         .text = std::move(text),
                         .p0 = p0,
                         .trip_value = trip_value(alpha_, share),
                         .tolerated_ratio = tolerated_ratio,
                         .seldom = seldom});
}

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

  const auto trips = [&](ThresholdGuard& asked, bool event, const Unit& weighed) {
    return asked.observe(observation.arm, event, weighed, /*alone=*/false, at);
  };
  if (trips(form_, !is_known(output.form), *counted)) return form_.verdict();
  if (!output.label) return std::nullopt;
  if (score_high_ && trips(*score_high_, output.score > high_, *counted)) return score_high_->verdict();
  if (score_low_ && trips(*score_low_, output.score < low_, *counted)) return score_low_->verdict();
  Unit exact = *counted;  // asked in reverse, a share that is too high would be the unsafe side
  exact.share = exact.unbiased_share();
  for (LabelGuards& label : labels_) {
    const bool is_it = *output.label == label.label;
    if (label.often && trips(*label.often, is_it, *counted)) return label.often->verdict();
    if (trips(label.rarely, is_it, exact)) return label.rarely.verdict();
  }
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
  const double share = kLabelShare / static_cast<double>(2 * std::max<size_t>(frequent.size(), 1));
  for (const auto& [count, label] : frequent) {
    const double usual = static_cast<double>(count) / kLearnt;
    std::optional<ThresholdGuard> often;
    if (drift_ * usual < kMostOften)
      often = guard(fmt::format("out_label_{}_often", label), fmt::format("label {} (more than {:g} times as often)", label, drift_),
                    drift_ * usual, share, drift_);
    labels_.push_back(
        {label, std::move(often),
         guard(fmt::format("out_label_{}_rarely", label), fmt::format("label {} (less than {:.3g} times as often)", label, 1 / drift_),
               usual / drift_, share, drift_, /*seldom=*/true)});
  }
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
  const double most = std::min(kMostOften, drift_ * kTail);
  if (scores.end() - std::ranges::upper_bound(scores, high_) >= thinnest)
    score_high_ = guard("out_score_high", fmt::format("scores above {:.4g}, stable's p95 (more than {:g} times as often)", high_, drift_),
                        most, kScoreShare, drift_);
  if (std::ranges::lower_bound(scores, low_) - scores.begin() >= thinnest)
    score_low_ = guard("out_score_low", fmt::format("scores below {:.4g}, stable's p5 (more than {:g} times as often)", low_, drift_), most,
                       kScoreShare, drift_);
}

std::vector<const ThresholdGuard*> OutputGuards::guards() const {
  std::vector<const ThresholdGuard*> all{&form_};
  if (score_high_) all.push_back(&*score_high_);
  if (score_low_) all.push_back(&*score_low_);
  for (const LabelGuards& label : labels_) {
    if (label.often) all.push_back(&*label.often);
    all.push_back(&label.rarely);
  }
  return all;
}

std::vector<Evidence> OutputGuards::evidence() const {
  if (!wanted_) return {};
  std::vector<Evidence> lines;
  std::optional<Evidence> nearest;
  for (const ThresholdGuard* asked : guards()) {
    Evidence line = asked->evidence();
    line.bits = asked->joint_bits();
    if (!line.guard.starts_with("out_label_"))
      lines.push_back(line);
    else if (!nearest || line.bits > nearest->bits)
      nearest = line;
  }
  if (!nearest) return lines;
  nearest->guard = "out_label";
  lines.push_back(*nearest);
  return lines;
}

}  // namespace serin::rollout
