#include "router/rollout/verdict_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "router/rollout/rank_process.h"

namespace serin::rollout {
namespace {

using Question = VerdictRecord::Question;

constexpr std::string_view kWords[] = {"worse",   "above",          "above and worse", "silence", "slower",
                                       "samples", "above and same", "usage",           "outcomes"};

constexpr double kLargestNumber = 1e308;
constexpr int64_t kLargestCount = int64_t{1} << 62;

Result<MixtureState> parse_state(const config::Node& owner, std::string_view key) {
  SERIN_TRY(const config::Node node, owner.at(key));
  MixtureState state;
  SERIN_TRY(const config::Node mixture, node.at("mixture"));
  const auto items = mixture.items();
  if (items.size() != state.mixture.size()) return mixture.error(fmt::format("must be {} numbers", state.mixture.size()));
  for (size_t i = 0; i < items.size(); ++i) {
    SERIN_TRY(state.mixture[i], items[i].number(0, kLargestNumber));
  }
  SERIN_TRY(state.unused_mass, node.number("unused_mass", 0, 1, 1));
  SERIN_TRY(const int64_t count, node.integer("count", 0, kLargestCount, 0));
  state.count = static_cast<uint64_t>(count);
  return state;
}

Result<DecidingEvent> parse_event(const config::Node& node) {
  DecidingEvent event;
  SERIN_TRY(const int64_t at, node.integer("at_ms", 0, kLargestCount, 0));
  event.at = std::chrono::milliseconds(at);
  SERIN_TRY(const config::Node arm, node.at("arm"));
  SERIN_TRY(const std::string word, arm.one_of({"stable", "canary"}));
  event.arm = word == "canary" ? Arm::kCanary : Arm::kStable;
  SERIN_TRY(event.bad, node.boolean("bad", true));
  SERIN_TRY(event.share, node.number("share", -kLargestNumber, kLargestNumber, 0));
  SERIN_TRY(event.units, node.number("units", 0, kLargestNumber, 1));
  SERIN_TRY(const int64_t good, node.integer("good_before", 0, kLargestCount, 0));
  event.good_before = static_cast<uint64_t>(good);
  SERIN_TRY(event.alone, node.boolean("alone", false));
  SERIN_TRY(const int64_t rank, node.integer("rank", 0, static_cast<int64_t>(RankProcess::kFailed), 0));
  event.rank = static_cast<uint8_t>(rank);
  SERIN_TRY(event.one_sided, node.boolean("one_sided", false));
  if (node.has("same")) {
    SERIN_TRY(event.same, node.boolean("same", false));
  }
  SERIN_TRY(event.bits, node.number("bits", -kLargestNumber, kLargestNumber, 0));
  return event;
}

}  // namespace

std::span<const std::string_view> words_of(Question) { return kWords; }

Result<VerdictRecord> parse_record(const config::Node& node) {
  VerdictRecord record;
  SERIN_TRY(record.guard, node.text("guard", ""));
  SERIN_TRY(const std::string word, node.text("question", std::string(kWords[0])));
  const auto* found = std::ranges::find(kWords, word);
  if (found == std::end(kWords)) return node.error(fmt::format("no question '{}'; there are {}", word, fmt::join(kWords, ", ")));
  record.question = static_cast<Question>(found - std::begin(kWords));
  SERIN_TRY(record.trip_value, node.number("trip_value", 0, kLargestNumber, 0));
  SERIN_TRY(record.tolerated_ratio, node.number("tolerated_ratio", 1, kLargestNumber, 1));
  SERIN_TRY(record.mirrored, node.boolean("mirrored", false));
  SERIN_TRY(record.p0, node.number("p0", -kLargestNumber, kLargestNumber, 0));
  SERIN_TRY(record.cap, node.number("cap", 0, kLargestNumber, 0));
  SERIN_TRY(record.worse, parse_state(node, "worse"));
  SERIN_TRY(record.above, parse_state(node, "above"));
  if (node.has("same")) {
    SERIN_TRY(record.same, parse_state(node, "same"));
    SERIN_TRY(record.same_p0, node.number("same_p0", 0, 1, 0));
  }
  SERIN_TRY(const config::Node events, node.at("events"));
  for (const config::Node& item : events.items()) {
    SERIN_TRY(const DecidingEvent event, parse_event(item));
    record.events.push_back(event);
  }
  return record;
}

}  // namespace serin::rollout
