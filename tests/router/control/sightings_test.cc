// What one router tells another arrives as it was sent; a message that was cut, changed or made up is refused and nothing else.

#include "router/control/sightings.h"

#include <gmock/gmock.h>

#include <random>
#include <tuple>

#include "router/rollout/spec.h"

namespace serin::router {
namespace {

using rollout::Arm;
using rollout::Observation;
using rollout::Outcome;

SightingsMessage example() {
  SightingsMessage message{.sender = "router-a/1f2e", .sequence = 42};
  Sightings& seen = message.sightings;
  seen = {.service = "digits", .rollout = "digits-7", .epoch = 7, .dropped = 3};
  seen.observations = {{.arm = Arm::kCanary,
                        .epoch = 7,
                        .weight_ppm = 50'000,
                        .outcome = Outcome::kDeadline,
                        .endpoint = 3,
                        .ending = rollout::Ending::kBroken},
                       {.epoch = 7,
                        .weight_ppm = 50'000,
                        .latency = std::chrono::microseconds(1234),
                        .batch = rollout::BatchId{99, 2, 8, 0x1f2e},
                        .key = 17,
                        .output = rollout::Output{.weight_ppm = 200'000, .finite = true, .form = 5, .label = 0, .score = 0.25},
                        .classes = std::make_shared<std::vector<std::string>>(std::vector<std::string>{"de", ""})},
                       {.epoch = 7, .outcome = Outcome::kNeutral, .ending = rollout::Ending::kRefused, .drawn = false, .sign = true},
                       {.epoch = 7, .drawn = false, .output = rollout::Output{.finite = false}}};
  seen.pairs = {{.epoch = 7, .canary = Outcome::kError, .canary_batch = rollout::BatchId{1, 0, 1}, .stable_endpoint = 2},
                {.epoch = 7,
                 .comparable = true,
                 .mismatch = true,
                 .stable_batch = rollout::BatchId{4, 1, 3},
                 .canary_ending = rollout::Ending::kRefused,
                 .classes = std::make_shared<std::vector<std::string>>(1, "4096-65535")}};
  return message;
}

void expect_equal(const std::optional<rollout::BatchId>& a, const std::optional<rollout::BatchId>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (!a) return;
  EXPECT_EQ(std::tie(a->boot_seq, a->i, a->n, a->boot), std::tie(b->boot_seq, b->i, b->n, b->boot));
}

void expect_equal(const rollout::Classes& a, const rollout::Classes& b) {
  ASSERT_EQ(a != nullptr, b != nullptr);
  if (a) {
    EXPECT_EQ(*a, *b);
  }
}

void expect_equal(const Observation& a, const Observation& b) {
  EXPECT_EQ(std::tie(a.arm, a.epoch, a.weight_ppm, a.outcome, a.latency, a.endpoint, a.ending, a.drawn, a.key, a.sign),
            std::tie(b.arm, b.epoch, b.weight_ppm, b.outcome, b.latency, b.endpoint, b.ending, b.drawn, b.key, b.sign));
  expect_equal(a.batch, b.batch);
  expect_equal(a.classes, b.classes);
  ASSERT_EQ(a.output.has_value(), b.output.has_value());
  if (!a.output) return;
  EXPECT_EQ(std::tie(a.output->weight_ppm, a.output->finite, a.output->form, a.output->label, a.output->score),
            std::tie(b.output->weight_ppm, b.output->finite, b.output->form, b.output->label, b.output->score));
}

TEST(Sightings, ArriveAsTheyWereSent) {
  const SightingsMessage sent = example();
  const auto got = decode(encode(sent));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(
      std::tie(got->sender, got->sequence, got->sightings.service, got->sightings.rollout, got->sightings.epoch, got->sightings.dropped),
      std::tie(sent.sender, sent.sequence, sent.sightings.service, sent.sightings.rollout, sent.sightings.epoch, sent.sightings.dropped));
  ASSERT_EQ(got->sightings.observations.size(), sent.sightings.observations.size());
  for (size_t i = 0; i < sent.sightings.observations.size(); ++i)
    expect_equal(got->sightings.observations[i], sent.sightings.observations[i]);
  ASSERT_EQ(got->sightings.pairs.size(), sent.sightings.pairs.size());
  for (size_t i = 0; i < sent.sightings.pairs.size(); ++i) {
    const rollout::ShadowPair &a = got->sightings.pairs[i], &b = sent.sightings.pairs[i];
    EXPECT_EQ(std::tie(a.epoch, a.stable, a.canary, a.comparable, a.mismatch, a.far, a.same, a.stable_endpoint, a.canary_endpoint,
                       a.canary_ending),
              std::tie(b.epoch, b.stable, b.canary, b.comparable, b.mismatch, b.far, b.same, b.stable_endpoint, b.canary_endpoint,
                       b.canary_ending));
    expect_equal(a.stable_batch, b.stable_batch);
    expect_equal(a.canary_batch, b.canary_batch);
    expect_equal(a.classes, b.classes);
  }
}

TEST(Sightings, CutAnywhereOrWithMoreBehindAreRefused) {
  const std::string whole = encode(example());
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(decode(std::string_view(whole).substr(0, size))) << size;
  EXPECT_FALSE(decode(whole + '\0'));
  std::string other = whole;
  other[0] = 1;
  EXPECT_FALSE(decode(other)) << "another version of the layout";
}

TEST(Sightings, WhateverIsMadeOfThemTakesNeitherMemoryNorTheProcess) {
  std::mt19937_64 random(7);
  const std::string whole = encode(example());
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = whole;
    for (uint64_t flips = 1 + random() % 4; flips > 0; --flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto got = decode(bytes);
    if (!got) continue;
    EXPECT_LE(got->sightings.observations.size() + got->sightings.pairs.size(), bytes.size());
    for (const Observation& seen : got->sightings.observations) {
      EXPECT_LE(seen.outcome, Outcome::kNeutral);
      EXPECT_LE(seen.weight_ppm, rollout::kAll);
      EXPECT_TRUE(!seen.batch || seen.batch->i < seen.batch->n);
    }
  }
}

}  // namespace
}  // namespace serin::router
