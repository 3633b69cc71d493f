// shared_download.h: one download of a blob from peers and the registry. For peers.cc only.
//
// The caller's thread reads from the registry. Each peer has a thread that asks it for its states, takes the chunks that it offers, and waits alone
// when the peer hangs.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/base/result.h"
#include "runtime/net/loop.h"
#include "runtime/net/session.h"
#include "runtime/registry/chunk_plan.h"
#include "runtime/registry/chunked_blob.h"
#include "runtime/registry/http_files.h"
#include "runtime/registry/peer_group.h"

namespace serin::registry {

class SharedDownload {
 public:
  /// `lookups`: by its way names are looked up. All must outlive it.
  SharedDownload(const PeerGroup& group, net::Loop& lookups, const HttpFiles& registry, const std::string& path, const Contents& wanted,
                 ChunkedBlob& blob);
  ~SharedDownload();
  SharedDownload(const SharedDownload&) = delete;
  SharedDownload& operator=(const SharedDownload&) = delete;

  /// Returns when the blob has its name. Errors: as HttpFiles::download(); kUnsupported: the registry answers no ranges.
  Status run();

 private:
  using Clock = ChunkPlan::Clock;
  enum class Heard : uint8_t { kNothing, kOtherBlobs, kStates, kItself };
  struct Worker {
    Worker(std::string where, net::ClientOptions options) : address(std::move(where)), session(std::move(options)) {}
    const std::string address;
    net::Session session;
    bool asked = false;   // at least once
    bool ended = false;   // it is of no use for this blob
    bool warned = false;  // of its TLS
    uint64_t bytes = 0;   // taken from it
    std::thread thread;
  };

  void look_for_peers();
  void work(size_t peer);
  Heard ask(size_t peer);
  net::Origin origin_of(const Worker& worker) const;
  net::ClientOptions options_for(const std::string& name) const;
  Status take(size_t peer, size_t chunk);
  std::chrono::milliseconds pause_after(Heard heard) const;

  Status gather();
  Status read(const ChunkRun& run);
  Result<std::string> read_again(size_t chunk);
  Result<bool> find_wrong_source();
  void put(size_t chunk, char state, std::optional<size_t> peer = std::nullopt) SERIN_REQUIRES(mutex_);
  void forget(std::optional<size_t> peer) SERIN_REQUIRES(mutex_);
  bool all_asked() const SERIN_REQUIRES(mutex_);
  void report();

  const PeerGroup& group_;
  PeerNames& peers_;
  net::Loop& lookups_;
  const HttpFiles& registry_;
  const std::string path_;
  const Contents wanted_;
  ChunkedBlob& blob_;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point next_look_{};
  uint64_t read_ = 0;  // bytes from the registry

  mutable Mutex mutex_;
  Condition changed_;
  ChunkPlan plan_ SERIN_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Worker>> workers_ SERIN_GUARDED_BY(mutex_);
  Status disk_ SERIN_GUARDED_BY(mutex_);  // the first failure of a write
  Clock::time_point last_taken_ SERIN_GUARDED_BY(mutex_) = begun_;
  bool ending_ SERIN_GUARDED_BY(mutex_) = false;
};

}  // namespace serin::registry
