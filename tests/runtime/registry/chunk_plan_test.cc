#include "runtime/registry/chunk_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace serin::registry {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kMib = 1 << 20;
const ChunkPlan::Clock::time_point kNow{1h};
Contents blob(uint64_t chunks) { return {"sha256:blob", chunks * kMib}; }

/// As a listener tells it.
std::string said(const ChunkPlan& plan) {
  std::string states = plan.states();
  for (char& state : states)
    if (state != kRead && state != kReading) state = kMissing;
  return states;
}

TEST(Chunks, CoverABlobWithoutGapsAndStayBetweenOneAndFourMib) {
  for (const uint64_t bytes : {uint64_t{1}, kMib - 1, kMib, kMib + 1, 200 * kMib, 700 * kMib, uint64_t{1} << 40}) {
    EXPECT_GE(chunk_bytes(bytes), kMib);
    EXPECT_LE(chunk_bytes(bytes), 4 * kMib);
    const size_t last = chunk_count(bytes) - 1;
    EXPECT_EQ(chunk_span(bytes, 0).from, 0U);
    EXPECT_EQ(chunk_span(bytes, last).to, bytes);
    EXPECT_GT(chunk_span(bytes, last).to, chunk_span(bytes, last).from);
    if (last == 0) continue;
    EXPECT_EQ(chunk_span(bytes, last - 1).to, chunk_span(bytes, last).from);
  }
}

TEST(ChunkPlan, ServersThatKnowOfEachOtherReadEachChunkOnce) {
  constexpr size_t kServers = 8, kChunks = 200;
  std::deque<ChunkPlan> plans;
  for (size_t i = 0; i < kServers; ++i) plans.emplace_back("server" + std::to_string(i), blob(kChunks));
  std::map<size_t, int> reads;
  std::vector<size_t> each(kServers);
  const auto tell = [&] {
    for (size_t i = 0; i < kServers; ++i)
      for (size_t j = 0; j < kServers; ++j)
        if (i != j) plans[i].hear(j, "server" + std::to_string(j), said(plans[j]), kNow);
  };
  tell();
  for (bool any = true; std::exchange(any, false);) {
    std::vector<std::optional<ChunkRun>> runs;
    for (const ChunkPlan& plan : plans) runs.push_back(plan.next_from_registry(kNow));
    for (size_t i = 0; i < kServers; ++i) {
      if (!runs[i]) continue;
      any = true;
      EXPECT_EQ(runs[i]->count, 1U);  // the neighbour is another server's
      ++reads[runs[i]->first];
      ++each[i];
      plans[i].put(runs[i]->first, kReading);
      plans[i].put(runs[i]->first, kRead);
    }
    tell();
  }
  EXPECT_EQ(reads.size(), kChunks);
  for (const auto& [chunk, times] : reads) EXPECT_EQ(times, 1) << chunk;
  EXPECT_LT(*std::ranges::max_element(each), 2 * kChunks / kServers);
  EXPECT_GT(*std::ranges::min_element(each), kChunks / kServers / 2);
  for (size_t i = 0; i < kServers; ++i)  // the rest comes from their owners
    for (size_t j = 0; j < kServers; ++j)
      while (const auto chunk = i == j ? std::nullopt : plans[i].next_from_peer(j)) plans[i].put(*chunk, kTaken, j);
  EXPECT_TRUE(std::ranges::all_of(plans, &ChunkPlan::whole));
}

TEST(ChunkPlan, WhoStartsAloneReadsFirstWhatItOwnsAmongOthers) {
  constexpr size_t kChunks = 256;
  ChunkPlan alone("a", blob(kChunks)), among("a", blob(kChunks));
  std::vector<size_t> first;
  while (first.size() < kChunks / 8) {
    first.push_back(alone.next_from_registry(kNow).value().first);
    alone.put(first.back(), kTaken);
  }
  std::set<size_t> own;
  for (size_t peer = 0; peer < 3; ++peer) among.hear(peer, "b" + std::to_string(peer), std::string(kChunks, kMissing), kNow);
  while (const auto run = among.next_from_registry(kNow)) {
    own.insert(run->first);
    among.put(run->first, kRead);
  }
  EXPECT_LT(own.size(), kChunks * 2 / 5);
  EXPECT_GT(std::ranges::count_if(first, [&](size_t chunk) { return own.contains(chunk); }), kChunks / 8 / 2);  // by chance a quarter
}

TEST(ChunkPlan, AloneItReadsLongerAndLongerRuns) {
  ChunkPlan plan("a", blob(100));
  std::vector<size_t> counts;
  while (const auto run = plan.next_from_registry(kNow)) {
    counts.push_back(run->count);
    for (size_t i = 0; i < run->count; ++i) {
      plan.put(run->first + i, kReading);
      plan.put(run->first + i, kRead);
    }
  }
  EXPECT_TRUE(plan.whole());
  EXPECT_EQ(counts.front(), 1U);
  EXPECT_GT(*std::ranges::max_element(counts), 4U);
  EXPECT_LE(*std::ranges::max_element(counts), 8U);
}

TEST(ChunkPlan, NothingIsReadThatAPeerHasOrReads) {
  ChunkPlan plan("a", blob(4));
  plan.hear(0, "b", "++++", kNow);
  EXPECT_FALSE(plan.next_from_registry(kNow));
  EXPECT_TRUE(plan.others_may_help(kNow + 1h));  // a whole one helps as long as it answers
  plan.hear(0, "b", "rrrr", kNow);
  EXPECT_FALSE(plan.next_from_registry(kNow));
}

TEST(ChunkPlan, WhatPeersHaveCanStillBeReadWhereTheyAreSlow) {
  ChunkPlan plan("a", blob(2));
  plan.hear(0, "b", "++", kNow);
  plan.put(plan.next_from_peer(0).value(), kFetching);
  const ChunkRun run = plan.next_missing().value();
  EXPECT_EQ(run.count, 1U);
  plan.put(run.first, kReading);
  EXPECT_FALSE(plan.next_missing());
}

TEST(ChunkPlan, ALostPeerOwnsNothing) {
  ChunkPlan plan("a", blob(64));
  plan.hear(0, "b", std::string(64, kReading), kNow);
  EXPECT_FALSE(plan.next_from_registry(kNow));
  plan.lose(0);
  EXPECT_TRUE(plan.next_from_registry(kNow));
  EXPECT_FALSE(plan.next_from_peer(0));
  EXPECT_FALSE(plan.others_may_help(kNow));
}

TEST(ChunkPlan, APeerThatMakesNoProgressIsNoLongerWaitedFor) {
  ChunkPlan plan("a", blob(3));
  plan.hear(0, "b", "rrr", kNow);
  const auto later = kNow + ChunkPlan::kPatience;
  plan.hear(0, "b", "+rr", later - 1s);  // progress
  EXPECT_FALSE(plan.next_from_registry(later));
  plan.hear(0, "b", "+rr", later + ChunkPlan::kPatience);
  EXPECT_EQ(plan.next_from_registry(later + ChunkPlan::kPatience).value().count, 1U);
  EXPECT_EQ(plan.next_from_peer(0), 0U);  // what it has is taken all the same
  EXPECT_FALSE(plan.others_may_help(later + ChunkPlan::kPatience));
}

TEST(ChunkPlan, StatesOfAnotherLengthOrWithoutANameAreNone) {
  ChunkPlan plan("a", blob(3));
  plan.hear(0, "b", "+++", kNow);
  EXPECT_FALSE(plan.hear(0, "b", "++++", kNow));
  EXPECT_FALSE(plan.next_from_peer(0));
  EXPECT_FALSE(plan.hear(0, "", "+++", kNow));
}

TEST(ChunkPlan, ARestartedPeerBeginsAnew) {
  ChunkPlan plan("a", blob(3));
  plan.hear(0, "b", "++-", kNow);
  plan.lose(0);
  plan.hear(0, "c", "r--", kNow + 1h);
  EXPECT_TRUE(plan.others_may_help(kNow + 1h + 1s));
  EXPECT_FALSE(plan.next_from_peer(0));
}

TEST(ChunkPlan, RemembersWhoSentWhat) {
  ChunkPlan plan("a", blob(3));
  plan.put(0, kTaken, 7);
  plan.put(1, kTaken);
  plan.put(2, kRead);
  EXPECT_TRUE(plan.whole());
  EXPECT_EQ(plan.source(0), 7U);
  EXPECT_EQ(plan.source(1), std::nullopt);
  plan.put(0, kMissing);
  EXPECT_FALSE(plan.whole());
  EXPECT_EQ(plan.source(0), std::nullopt);
}

}  // namespace
}  // namespace serin::registry
