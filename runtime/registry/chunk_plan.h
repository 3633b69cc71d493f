// chunk_plan.h: which chunk of a blob is read from where, when several servers download the blob at once. Pure: time comes in as an argument.
//
//   ChunkPlan plan("4f2c", {"sha256:91ab...", 64 << 20});
//   plan.hear(0, "77aa", "+--r...", now);                               // what a peer says of itself
//   if (const auto chunk = plan.next_from_peer(0)) plan.put(*chunk, kFetching);
//   if (const auto run = plan.next_from_registry(now)) ...              // put each of its chunks to kReading, then to kRead
//
// Each chunk has one owner among the servers that download: the one with the highest hash of server, blob and chunk (rendezvous hashing). The owner
// reads it from the registry, the others take it from the owner. There is no agreement: servers that know of each other come to the same result.
// A server reads first what it has the highest hashes for. So what it reads before it knows others is mostly its own, too.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/registry/http_files.h"

namespace serin::registry {

/// States of a chunk, as servers tell them each other. Those that are not offered look missing to others.
inline constexpr char kMissing = '-', kReading = 'r', kFetching = 'f';
inline constexpr char kRead = '+';  ///< here, and offered: read from the registry, or of a blob with the right digest
inline constexpr char kTaken =
    'p';  ///< here, from a peer; not offered before the digest is compared, so a wrong chunk is the fault of its sender

/// All servers compute it alike: 1 to 4 MiB.
uint64_t chunk_bytes(uint64_t blob_bytes);
size_t chunk_count(uint64_t blob_bytes);
Span chunk_span(uint64_t blob_bytes, size_t chunk);

/// Adjacent chunks.
struct ChunkRun {
  size_t first, count;
};

class ChunkPlan {
 public:
  using Clock = std::chrono::steady_clock;
  /// A peer that has no more to offer after this time than before is no longer waited for.
  static constexpr std::chrono::seconds kPatience{30};

  /// `server`: name of this server; no other has it.
  ChunkPlan(std::string server, const Contents& blob);

  const std::string& states() const { return here_; }
  /// `peer`: where a chunk that is kTaken came from; absent: from an earlier start of the program.
  void put(size_t chunk, char state, std::optional<size_t> peer = std::nullopt);
  bool whole() const { return left_ == 0; }
  std::optional<size_t> source(size_t chunk) const { return sources_[chunk]; }

  /// Peers are numbered by the caller. False: these are no states of this blob.
  bool hear(size_t peer, const std::string& server, std::string states, Clock::time_point now);
  /// It does not answer; until it is heard again, it owns nothing and offers nothing.
  void lose(size_t peer);

  /// Chunks that this server owns, and that no peer has or reads. One, unless there are no others: then more and more at once.
  std::optional<ChunkRun> next_from_registry(Clock::time_point now) const;
  /// Any that is missing, for one whose peers are too slow.
  std::optional<ChunkRun> next_missing() const;
  /// A chunk that the peer offers and that is missing here.
  std::optional<size_t> next_from_peer(size_t peer) const;
  /// Whether a chunk may still come without this server's own reading.
  bool others_may_help(Clock::time_point now) const;

 private:
  struct Peer {
    std::string server, states;  // empty: it is not heard
    size_t offered = 0;
    Clock::time_point progress{};  // when that was last more than before
    std::vector<uint64_t> scores;
    bool heard() const { return !states.empty(); }
    bool whole() const { return offered == states.size(); }
  };
  std::vector<uint64_t> scores(const std::string& server) const;
  bool is_mine(size_t chunk, Clock::time_point now) const;
  static bool is_waited_for(const Peer& peer, Clock::time_point now) { return peer.heard() && now - peer.progress < kPatience; }
  bool alone() const;

  const std::string server_, digest_;
  std::string here_;
  std::vector<std::optional<size_t>> sources_;
  size_t left_, read_ = 0;  // chunks: not here; read from the registry
  const std::vector<uint64_t> scores_;
  std::vector<size_t> order_;  // of reading: by falling score
  std::vector<Peer> peers_;
};

}  // namespace serin::registry
