// rollout_explain.cc: prints a verdict for users: the question, each deciding event with the evidence after it, and the same decision made
// again, here, from the record alone. The router's statement is accepted only where the replay agrees.

#include <fmt/format.h>

#include <cmath>

#include "router/rollout/rank_process.h"
#include "router/rollout/replay.h"
#include "runtime/cli/rollout/rollout_text.h"

namespace serin::cli {
namespace {

using rollout::VerdictRecord;

std::string question(const VerdictRecord& record) {
  switch (record.question) {
    case VerdictRecord::Question::kWorse:
      return record.mirrored ? "does it come from stable more often than its share of the traffic explains?"
                             : "does it come from the canary more often than its share of the traffic explains?";
    case VerdictRecord::Question::kAbove: return fmt::format("is the canary's rate above {:g} %?", 100 * record.p0);
    case VerdictRecord::Question::kAboveAndWorse:
      return fmt::format("is the canary's rate above {:g} %, and is it worse than stable?", 100 * record.p0);
    case VerdictRecord::Question::kSilence: return "how often did the canary stop answering while stable answered?";
    case VerdictRecord::Question::kSlower: return "are the canary's answers slower than stable's, by their ranks among stable's limits?";
    case VerdictRecord::Question::kSamples: return fmt::format("how many samples in a row were above {:g}?", record.p0);
    case VerdictRecord::Question::kAboveAndSame:
      return fmt::format("is the canary far off in more than {:g} % of the pairs, though it is numerically the same in more than {:g} %?",
                         100 * record.p0, 100 * record.same_p0.value_or(0));
    case VerdictRecord::Question::kUsage:
      return record.guard == "res_cpu" ? "does an answer cost more CPU time than tolerated in more than half of the comparisons?"
                                       : "is it more than before, and grown by more than stable's, in more than half of its changes?";
    case VerdictRecord::Question::kOutcomes:
      return fmt::format("are the outcomes reported for the canary worse than stable's by more than {:g}?", record.p0);
  }
  return "";
}

bool is_counted(const VerdictRecord& record) {
  return record.question == VerdictRecord::Question::kSilence || record.question == VerdictRecord::Question::kSamples;
}

std::string rank_words(size_t rank) {
  if (rank == 0) return "not slower than p25";
  if (rank == rollout::RankProcess::kFailed) return "failed";
  return fmt::format("slower than {}", rollout::LatencyLimits::kNames[rank - 1]);
}

std::string event_line(const VerdictRecord& record, const rollout::DecidingEvent& event, double bits) {
  const double at = static_cast<double>(event.at.count()) / 1000;
  if (is_counted(record)) return fmt::format("  {:>10.3f} s  {:>12g}  {:g}\n", at, event.share, bits);
  if (record.question == VerdictRecord::Question::kAboveAndSame) {
    const char* said = event.bad ? "another label" : event.same.value_or(false) ? "the same numbers" : "other numbers";
    const std::string before = event.good_before > 0 ? fmt::format("  after {} pairs without", event.good_before) : "";
    return fmt::format("  {:>10.3f} s  {:<17}  {:>7.2f} bits{}\n", at, said, bits, before);
  }
  if (record.question == VerdictRecord::Question::kUsage)
    return fmt::format("  {:>10.3f} s  {:>12.6g}  {:<4}  {:>7.2f} bits\n", at, event.share, event.bad ? "more" : "less", bits);
  if (record.question == VerdictRecord::Question::kOutcomes)
    return fmt::format("  {:>10.3f} s  differs by {:.4g} in {} reports  {:>7.2f} bits\n", at, event.share, event.good_before + 1, bits);
  std::string more;
  if (record.question == VerdictRecord::Question::kSlower)
    more = fmt::format("  {}{}", rank_words(event.rank), event.one_sided ? ", one-sided" : "");
  else if (event.good_before > 0)
    more = fmt::format("  after {} good", event.good_before);
  return fmt::format("  {:>10.3f} s  {:<6}  share {:>8.4g} %  units {:<5.3g} {:>7.2f} bits{}\n", at,
                     rollout::kArmNames[static_cast<size_t>(event.arm)], 100 * event.share, event.units, bits, more);
}

/// The lines of the record, and whether deciding again came to what the router had decided.
std::string explain_record(const VerdictRecord& record, bool rolled_back, bool& agrees) {
  const rollout::Replay again = rollout::replay(record);
  const double trip = is_counted(record) ? record.trip_value : std::log2(record.trip_value);
  const char* unit = is_counted(record) ? "times" : "bits";
  std::string lines = fmt::format("{}: {}\nrolls back at {:.4g} {}; its latest {} events:\n", record.guard, question(record), trip, unit,
                                  record.events.size());
  for (size_t i = 0; i < record.events.size(); ++i) lines += event_line(record, record.events[i], again.bits[i]);
  agrees = again.rolled_back == rolled_back;
  for (size_t i = 0; i < record.events.size(); ++i) agrees = agrees && again.bits[i] == record.events[i].bits;
  const std::string decision =
      again.rolled_back ? fmt::format("rolled back by event {} of {}", again.decided_by + 1, record.events.size()) : "no verdict";
  return lines +
         fmt::format("decided again from this record alone: {}{}\n", decision,
                     agrees ? "" : " - this does NOT match the router's decision: the record is damaged, or of another version of Serin");
}

}  // namespace

std::string explain_verdict(const std::string& body, bool& agrees) {
  // Not Boost.JSON: its numbers may be off by the last bit, and the replay is exact.
  const auto verdict = config::Node::parse(body, "verdict");
  agrees = false;
  if (!verdict) return verdict.error().message + "\n";
  const auto text = [&](const config::Node& node, const char* key) { return node.text(key, "").value(); };
  const config::Node answers = verdict->at("answers").value();
  std::string lines = fmt::format("{}: canary {} compared with stable {}, {} after {} s\n{}\nanswers  stable {}, canary {}, shadow {}\n",
                                  text(*verdict, "id"), text(*verdict, "canary"), text(*verdict, "stable"), text(*verdict, "phase"),
                                  text(*verdict, "seconds"), text(*verdict, "reason"), text(answers, "stable"), text(answers, "canary"),
                                  text(answers, "shadow"));
  for (const config::Node& rehearsed : verdict->at("dry_run").value().items())
    lines += fmt::format("would have rolled back after {} ms: {}\n", text(rehearsed, "at_ms"), text(rehearsed, "reason"));
  const auto given = verdict->find("record");
  agrees = !given;
  if (!given) return lines + "decided by a person, or before the router last started: there is no evidence to show\n";
  const auto record = rollout::parse_record(*given);
  if (!record) return lines + record.error().message + "\n";
  const bool decided = text(*verdict, "phase") == "RolledBack" && text(*verdict, "cause") == record->guard;
  return lines + explain_record(*record, decided, agrees);
}

}  // namespace serin::cli
