// sightings.cc: little-endian fields in the order of the structs; what may be absent has a bit in the flags before it. The first byte is the version of
// the layout: a router that does not know it refuses the message, and each then judges by itself.

#include "router/control/sightings.h"

#include <array>
#include <cmath>
#include <cstring>

namespace serin::router {
namespace {

using rollout::Arm;
using rollout::Observation;
using rollout::Outcome;
using rollout::ShadowPair;

constexpr uint8_t kVersion = 3;
constexpr size_t kMostEntries = 100'000;

enum ObservationFlag : uint8_t { kCanary = 1, kBatch = 2, kSign = 4, kDrawn = 8, kKey = 16, kOutput = 32, kLabel = 64, kFinite = 128 };
enum PairFlag : uint8_t { kComparable = 1, kMismatch = 2, kStableBatch = 4, kCanaryBatch = 8, kFar = 32, kTold = 64, kSame = 128 };

class Writer {
 public:
  template <class T>
  void put(T value) {
    std::array<char, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &value, sizeof(T));
    text.append(bytes.data(), bytes.size());
  }
  void put_text(std::string_view value) {
    put(static_cast<uint32_t>(value.size()));
    text += value;
  }
  void put_batch(const rollout::BatchId& batch) {
    put(batch.boot_seq);
    put(batch.i);
    put(batch.n);
    put(batch.boot);
  }
  /// Classes are short: classify.h.
  void put_classes(const rollout::Classes& classes) {
    put(static_cast<uint8_t>(classes ? classes->size() : 0));
    if (!classes) return;
    for (const std::string& one : *classes) {
      put(static_cast<uint8_t>(one.size()));
      text += one;
    }
  }
  std::string text;
};

/// After the first read past the end everything is zero and bad() is true.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  template <class T>
  T take() {
    T value{};
    if (left_.size() < sizeof(T)) {
      bad_ = true;
      left_ = {};
      return value;
    }
    std::memcpy(&value, left_.data(), sizeof(T));
    left_.remove_prefix(sizeof(T));
    return value;
  }
  std::string take_text() { return take_text(take<uint32_t>()); }
  std::string take_text(size_t size) {
    if (size > left_.size()) bad_ = true;
    std::string text(left_.substr(0, bad_ ? 0 : size));
    left_.remove_prefix(text.size());
    return text;
  }
  Outcome take_outcome() {
    const auto value = take<uint8_t>();
    if (value > static_cast<uint8_t>(Outcome::kNeutral)) bad_ = true;
    return bad_ ? Outcome::kNeutral : static_cast<Outcome>(value);
  }
  rollout::Ending take_ending() {
    const auto value = take<uint8_t>();
    if (value > static_cast<uint8_t>(rollout::Ending::kRefused)) bad_ = true;
    return bad_ ? rollout::Ending::kAnswered : static_cast<rollout::Ending>(value);
  }
  uint32_t take_ppm() {
    const auto value = take<uint32_t>();
    if (value > 1'000'000) bad_ = true;
    return bad_ ? 0 : value;
  }
  rollout::BatchId take_batch() {
    rollout::BatchId batch{.boot_seq = take<uint64_t>(), .i = take<uint32_t>(), .n = take<uint32_t>(), .boot = take<uint64_t>()};
    if (batch.i >= batch.n) bad_ = true;
    return batch;
  }
  rollout::Classes take_classes() {
    const auto count = take<uint8_t>();
    if (count == 0) return nullptr;
    auto classes = std::make_shared<std::vector<std::string>>();
    for (uint8_t i = 0; i < count && !bad_; ++i) classes->push_back(take_text(take<uint8_t>()));
    return classes;
  }
  void refuse() { bad_ = true; }
  bool bad() const { return bad_; }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view left_;
  bool bad_ = false;
};

void write(Writer& to, const Observation& seen) {
  const auto flag = [](bool on, uint8_t bit) { return on ? bit : uint8_t{0}; };
  to.put(static_cast<uint8_t>(flag(seen.arm == Arm::kCanary, kCanary) | flag(seen.batch.has_value(), kBatch) | flag(seen.sign, kSign) |
                              flag(seen.drawn, kDrawn) | flag(seen.key.has_value(), kKey) | flag(seen.output.has_value(), kOutput) |
                              flag(seen.output && seen.output->label, kLabel) | flag(seen.output && seen.output->finite, kFinite)));
  to.put(static_cast<uint8_t>(seen.outcome));
  to.put(static_cast<uint8_t>(seen.ending));
  to.put(seen.weight_ppm);
  to.put(seen.endpoint);
  to.put(static_cast<int64_t>(seen.latency.count()));
  if (seen.batch) to.put_batch(*seen.batch);
  if (seen.key) to.put(*seen.key);
  to.put_classes(seen.classes);
  if (!seen.output) return;
  to.put(seen.output->weight_ppm);
  to.put(seen.output->form);
  to.put(seen.output->score);
  if (seen.output->label) to.put(*seen.output->label);
}

Observation read_observation(Reader& from) {
  const auto flags = from.take<uint8_t>();
  Observation seen{.arm = flags & kCanary ? Arm::kCanary : Arm::kStable,
                   .outcome = from.take_outcome(),
                   .ending = from.take_ending(),
                   .drawn = (flags & kDrawn) != 0};
  seen.weight_ppm = from.take_ppm();
  seen.endpoint = from.take<uint32_t>();
  seen.latency = std::chrono::nanoseconds(from.take<int64_t>());
  if (seen.latency.count() < 0) from.refuse();
  seen.sign = (flags & kSign) != 0;
  if (flags & kBatch) seen.batch = from.take_batch();
  if (flags & kKey) seen.key = from.take<uint64_t>();
  seen.classes = from.take_classes();
  if ((flags & kOutput) == 0) return seen;
  rollout::Output output{.weight_ppm = from.take_ppm(), .finite = (flags & kFinite) != 0};
  output.form = from.take<uint64_t>();
  output.score = from.take<double>();
  if (std::isnan(output.score)) from.refuse();
  if (flags & kLabel) output.label = from.take<uint32_t>();
  seen.output = output;
  return seen;
}

void write(Writer& to, const ShadowPair& pair) {
  to.put(static_cast<uint8_t>((pair.comparable ? kComparable : 0) | (pair.mismatch ? kMismatch : 0) |
                              (pair.stable_batch ? kStableBatch : 0) | (pair.canary_batch ? kCanaryBatch : 0) | (pair.far ? kFar : 0) |
                              (pair.same ? kTold : 0) | (pair.same.value_or(false) ? kSame : 0)));
  to.put(static_cast<uint8_t>(pair.stable));
  to.put(static_cast<uint8_t>(pair.canary));
  to.put(static_cast<uint8_t>(pair.canary_ending));
  to.put(pair.stable_endpoint);
  to.put(pair.canary_endpoint);
  if (pair.stable_batch) to.put_batch(*pair.stable_batch);
  if (pair.canary_batch) to.put_batch(*pair.canary_batch);
  to.put_classes(pair.classes);
}

ShadowPair read_pair(Reader& from) {
  const auto flags = from.take<uint8_t>();
  ShadowPair pair{.comparable = (flags & kComparable) != 0, .mismatch = (flags & kMismatch) != 0};
  pair.far = (flags & kFar) != 0;
  if (flags & kTold) pair.same = (flags & kSame) != 0;
  pair.stable = from.take_outcome();
  pair.canary = from.take_outcome();
  pair.canary_ending = from.take_ending();
  pair.stable_endpoint = from.take<uint32_t>();
  pair.canary_endpoint = from.take<uint32_t>();
  if (flags & kStableBatch) pair.stable_batch = from.take_batch();
  if (flags & kCanaryBatch) pair.canary_batch = from.take_batch();
  pair.classes = from.take_classes();
  return pair;
}

}  // namespace

std::string encode(const SightingsMessage& message) {
  const Sightings& seen = message.sightings;
  Writer to;
  to.text.reserve(64 + 48 * seen.observations.size() + 48 * seen.pairs.size());
  to.put(kVersion);
  to.put_text(message.sender);
  to.put(message.sequence);
  to.put_text(seen.service);
  to.put_text(seen.rollout);
  to.put(seen.epoch);
  to.put(seen.dropped);
  to.put(static_cast<uint32_t>(seen.observations.size()));
  for (const Observation& observation : seen.observations) write(to, observation);
  to.put(static_cast<uint32_t>(seen.pairs.size()));
  for (const ShadowPair& pair : seen.pairs) write(to, pair);
  return std::move(to.text);
}

Result<SightingsMessage> decode(std::string_view bytes) {
  Reader from(bytes);
  if (from.take<uint8_t>() != kVersion) return Error{Code::kCorrupt, "a message from another version of Serin"};
  SightingsMessage message{.sender = from.take_text(), .sequence = from.take<uint64_t>()};
  Sightings& seen = message.sightings;
  seen.service = from.take_text();
  seen.rollout = from.take_text();
  seen.epoch = from.take<uint64_t>();
  seen.dropped = from.take<uint64_t>();
  const auto observations = from.take<uint32_t>();
  for (uint32_t i = 0; i < observations && i <= kMostEntries && !from.bad(); ++i) {
    seen.observations.push_back(read_observation(from));
    seen.observations.back().epoch = seen.epoch;
  }
  const auto pairs = from.take<uint32_t>();
  for (uint32_t i = 0; i < pairs && i <= kMostEntries && !from.bad(); ++i) {
    seen.pairs.push_back(read_pair(from));
    seen.pairs.back().epoch = seen.epoch;
  }
  if (from.bad() || !from.at_end()) return Error{Code::kCorrupt, "a message that contradicts itself"};
  return message;
}

}  // namespace serin::router
