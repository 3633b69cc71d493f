// peers.h: servers of the same models as a source of their files: all of them together read each file about once from the registry.
//
//   SERIN_TRY(const auto peers, Peers::open({.names = "serin-peers:8004", .address = "0.0.0.0"}, metrics));   // listens there from now on
//   SERIN_CHECK(peers->download(files, "digits/blobs/sha256/91ab...", {"sha256:91ab...", 4711}, "cache/91ab..."));
//
// chunk_plan.h has the rules, peer_listener.h the protocol. There is no coordinator. Only unfinished files outlive the process.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "runtime/base/metrics.h"
#include "runtime/base/result.h"
#include "runtime/net/loop.h"
#include "runtime/net/tls.h"
#include "runtime/registry/http_files.h"
#include "runtime/registry/peer_group.h"
#include "runtime/registry/peer_listener.h"

namespace serin::registry {

struct PeerOptions {
  std::string names;                           ///< as PeerNames::parse() reads them; empty: there are no peers
  std::string address = "127.0.0.1";           ///< where this server listens, at their port
  std::shared_ptr<const net::TlsContext> tls;  ///< shown to peers that take files from here; null: no TLS
  std::shared_ptr<const net::TlsContext>
      peer_tls;                  ///< for files of peers: whom to believe, and what to show. Null, if and only if `tls` is
  std::string certificate_name;  ///< in the certificates of peers; empty: the HOST by which each was found
};

/// For one thread at a time.
class Peers {
 public:
  /// Errors: kInvalidArgument; as net::Server::start().
  static Result<std::shared_ptr<Peers>> open(const PeerOptions& options, metrics::Registry& metrics);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// As HttpFiles::download(): chunks come from peers that have them, the others from `registry`. Without peers, all come from there.
  Status download(const HttpFiles& registry, const std::string& path, const Contents& wanted, const std::string& to);
  /// Peers may take the file from here. Its digest was compared.
  void offer(const Contents& contents, const std::string& file);

 private:
  explicit Peers(PeerGroup group) : group_(std::move(group)) {}

  const PeerGroup group_;
  net::Loops loops_{1};
  std::unique_ptr<PeerListener> listener_;  // ends before its io thread
};

}  // namespace serin::registry
