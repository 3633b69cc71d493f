// peer_listener.h: the port at which a server offers files of its models to its peers, by digest, read only.
//
//   GET /v1/blobs/sha256:91ab...      {"server": "4f2c", "bytes": 67108864, "chunk_bytes": 1048576, "chunks": "+--r"}; the letters: chunk_plan.h
//   GET /v1/blobs/sha256:91ab.../3    the bytes of a chunk that is offered
//
// Everything else is 404. There are no paths of files in requests: a digest is looked up among those that were offered. Answers wait for nothing,
// so two servers that ask each other cannot wait for each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/mutex.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"
#include "runtime/net/loop.h"
#include "runtime/net/server.h"
#include "runtime/registry/chunked_blob.h"

namespace serin::registry {

inline constexpr std::string_view kBlobsOfPeers = "/v1/blobs/";

/// Thread-safe.
class PeerListener {
 public:
  /// `options`: where it listens, with which TLS. `server`: as peers know this server. `sent` counts bytes of chunks. `loops` must outlive it.
  /// Errors: as net::Server::start().
  static Result<std::unique_ptr<PeerListener>> open(net::Loops& loops, net::ServerOptions options, std::string server,
                                                    std::shared_ptr<metrics::Counter> sent);

  void offer(const std::string& digest, std::shared_ptr<const ChunkedBlob> blob);
  void withdraw(const std::string& digest);

 private:
  PeerListener(std::string server, std::shared_ptr<metrics::Counter> sent) : server_name_(std::move(server)), sent_(std::move(sent)) {}
  void answer(const net::Request& request, net::Responder responder);
  void send_chunk(std::shared_ptr<const ChunkedBlob> blob, size_t chunk, net::Responder responder);
  std::shared_ptr<const ChunkedBlob> find(std::string_view digest) const;

  const std::string server_name_;
  const std::shared_ptr<metrics::Counter> sent_;
  const std::shared_ptr<std::atomic<int>> sending_ = std::make_shared<std::atomic<int>>(0);  // chunks in memory
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const ChunkedBlob>, std::less<>> offered_ SERIN_GUARDED_BY(mutex_);
  std::unique_ptr<net::Server> server_;  // last: it ends first
};

}  // namespace serin::registry
