#include "runtime/registry/chunk_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/stable_hash.h"

namespace serin::registry {
namespace {

constexpr uint64_t kLeastChunk = 1 << 20, kMostChunk = 4 << 20;
constexpr uint64_t kFewChunks = 256;  // so many are shared evenly enough
constexpr size_t kLongestRun = 8;

bool is_here(char state) { return state == kRead || state == kTaken; }

}  // namespace

uint64_t chunk_bytes(uint64_t blob_bytes) {
  const uint64_t wanted = (blob_bytes / kFewChunks + kLeastChunk - 1) / kLeastChunk * kLeastChunk;
  return std::clamp(wanted, kLeastChunk, kMostChunk);
}

size_t chunk_count(uint64_t blob_bytes) { return (blob_bytes + chunk_bytes(blob_bytes) - 1) / chunk_bytes(blob_bytes); }

Span chunk_span(uint64_t blob_bytes, size_t chunk) {
  const uint64_t each = chunk_bytes(blob_bytes), from = each * chunk;
  return {from, std::min(blob_bytes, from + each)};
}

ChunkPlan::ChunkPlan(std::string server, const Contents& blob)
    : server_(std::move(server)),
      digest_(blob.digest),
      here_(chunk_count(blob.bytes), kMissing),
      sources_(here_.size()),
      left_(here_.size()),
      scores_(scores(server_)),
      order_(here_.size()) {
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::ranges::sort(order_, std::greater<>(), [this](size_t chunk) { return scores_[chunk]; });
}

std::vector<uint64_t> ChunkPlan::scores(const std::string& server) const {
  const uint64_t seed = hash_text(digest_, hash_text(server));
  std::vector<uint64_t> made(here_.size());
  for (size_t chunk = 0; chunk < made.size(); ++chunk) made[chunk] = mix(seed + chunk * kGolden);
  return made;
}

void ChunkPlan::put(size_t chunk, char state, std::optional<size_t> peer) {
  const char before = std::exchange(here_[chunk], state);
  if (is_here(before) != is_here(state)) left_ = is_here(state) ? left_ - 1 : left_ + 1;
  if (before == kReading && state == kRead) ++read_;
  sources_[chunk] = state == kTaken ? peer : std::nullopt;
}

bool ChunkPlan::hear(size_t peer, const std::string& server, std::string states, Clock::time_point now) {
  if (peers_.size() <= peer) peers_.resize(peer + 1);
  Peer& said = peers_[peer];
  if (server.empty() || states.size() != here_.size()) {
    lose(peer);
    return false;
  }
  if (said.server != server) said = {.server = server, .states = {}, .scores = scores(server)};
  const auto offered = static_cast<size_t>(std::ranges::count(states, kRead));
  if (offered > said.offered || said.progress == Clock::time_point()) said.progress = now;
  said.offered = offered;
  said.states = std::move(states);
  return true;
}

void ChunkPlan::lose(size_t peer) {
  if (peer < peers_.size()) peers_[peer].states.clear();
}

bool ChunkPlan::alone() const { return std::ranges::none_of(peers_, &Peer::heard); }

bool ChunkPlan::is_mine(size_t chunk, Clock::time_point now) const {
  if (here_[chunk] != kMissing) return false;
  for (const Peer& peer : peers_) {
    if (!peer.heard()) continue;
    const char there = peer.states[chunk];
    if (there == kRead) return false;
    if (peer.whole() || !is_waited_for(peer, now)) continue;
    if (there == kReading) return false;
    // Equal scores are as good as impossible; then the name decides.
    if (std::pair(peer.scores[chunk], peer.server) > std::pair(scores_[chunk], server_)) return false;
  }
  return true;
}

std::optional<ChunkRun> ChunkPlan::next_from_registry(Clock::time_point now) const {
  const auto first = std::ranges::find_if(order_, [&](size_t chunk) { return is_mine(chunk, now); });
  if (first == order_.end()) return std::nullopt;
  ChunkRun run{*first, 1};
  // A request costs a round trip. But who has just started cannot know yet whether others have, too.
  const size_t most = alone() ? std::min(read_ + 1, kLongestRun) : 1;
  while (run.count < most && run.first + run.count < here_.size() && is_mine(run.first + run.count, now)) ++run.count;
  return run;
}

std::optional<ChunkRun> ChunkPlan::next_missing() const {
  const auto first = std::ranges::find(order_, kMissing, [this](size_t chunk) { return here_[chunk]; });
  return first == order_.end() ? std::nullopt : std::optional(ChunkRun{*first, 1});
}

std::optional<size_t> ChunkPlan::next_from_peer(size_t peer) const {
  if (peer >= peers_.size() || !peers_[peer].heard()) return std::nullopt;
  for (const size_t chunk : order_)  // another one in each server, so that not all ask a warm one for the same
    if (here_[chunk] == kMissing && peers_[peer].states[chunk] == kRead) return chunk;
  return std::nullopt;
}

bool ChunkPlan::others_may_help(Clock::time_point now) const {
  if (here_.find(kFetching) != std::string::npos) return true;
  return std::ranges::any_of(peers_, [&](const Peer& peer) { return peer.heard() && (peer.whole() || is_waited_for(peer, now)); });
}

}  // namespace serin::registry
