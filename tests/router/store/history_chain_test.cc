// Whatever is done to an audit log after it was written is noticed at the first entry it was done to.

#include "router/store/history_chain.h"

#include <gmock/gmock.h>

#include <functional>

namespace serin::store {
namespace {

using ::testing::HasSubstr;

std::vector<HistoryEntry> five_entries() {
  std::vector<HistoryEntry> entries;
  for (int i = 1; i <= 5; ++i)
    entries.push_back({.id = i,
                       .wall_ms = 1000 + i,
                       .service = "digits",
                       .rollout = "digits-7",
                       .event = "weight",
                       .actor = "ann",
                       .detail = "step",
                       .weight_ppm = 10'000U * static_cast<uint32_t>(i)});
  chain(entries, "");
  return entries;
}

TEST(HistoryChain, Sha256IsThatOfFips180) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(HistoryChain, AnUntouchedLogIsWhole) {
  EXPECT_FALSE(find_break({}));
  EXPECT_FALSE(find_break(five_entries()));
}

TEST(HistoryChain, AnyChangedFieldIsFoundAtItsEntry) {
  const std::vector<std::function<void(HistoryEntry&)>> changes = {
      [](HistoryEntry& e) { e.wall_ms += 1; },
      [](HistoryEntry& e) { e.service = "resnet"; },
      [](HistoryEntry& e) { e.rollout = ""; },
      [](HistoryEntry& e) { e.event = "promoted"; },
      [](HistoryEntry& e) { e.actor = "bob"; },
      [](HistoryEntry& e) { e.detail += "s"; },
      [](HistoryEntry& e) { e.weight_ppm = 0; },
      [](HistoryEntry& e) { e.digest[0] ^= 1; },
      [](HistoryEntry& e) { e.previous[0] ^= 1; },
      [](HistoryEntry& e) { e.digest.clear(); },
      [](HistoryEntry& e) { std::swap(e.actor, e.detail); },
      [](HistoryEntry& e) { e.event += e.actor.substr(0, 1), e.actor.erase(0, 1); }};
  for (size_t change = 0; change < changes.size(); ++change) {
    auto entries = five_entries();
    changes[change](entries[2]);
    const auto broken = find_break(entries);
    ASSERT_TRUE(broken) << change;
    EXPECT_EQ(broken->index, 2U) << change;
    EXPECT_THAT(broken->why, HasSubstr("entry 3: was changed"));
  }
}

TEST(HistoryChain, AnEntryTakenOutOrMovedIsFound) {
  auto entries = five_entries();
  entries.erase(entries.begin() + 2);
  ASSERT_TRUE(find_break(entries));
  EXPECT_THAT(find_break(entries)->why, HasSubstr("entry 4: does not follow"));
  entries = five_entries();
  std::swap(entries[1], entries[2]);
  EXPECT_EQ(find_break(entries)->index, 1U);
}

TEST(HistoryChain, TheOldestMayBeForgotten) {
  auto entries = five_entries();
  entries.erase(entries.begin(), entries.begin() + 2);
  EXPECT_FALSE(find_break(entries));
}

TEST(HistoryChain, EntriesOfBeforeThereWereDigestsSayNothing) {
  auto entries = five_entries();
  for (int i = 0; i < 2; ++i) entries[static_cast<size_t>(i)].digest = entries[static_cast<size_t>(i)].previous = "";
  EXPECT_FALSE(find_break(entries));
  entries[3].detail = "other";
  EXPECT_EQ(find_break(entries)->index, 3U);
}

}  // namespace
}  // namespace serin::store
