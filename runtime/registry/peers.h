// peers.h: servers of the same models as a source of their files: all of them together read each file about once from the registry.
//
//   SERIN_TRY(const auto peers, Peers::open("serin-peers:8004", "0.0.0.0"));       // listens there from now on
//   SERIN_CHECK(peers->download(files, "digits/blobs/sha256/91ab...", {"sha256:91ab...", 4711}, "cache/91ab..."));
//
// chunk_plan.h has the rules, peer_listener.h the protocol. There is no coordinator. Only unfinished files outlive the process.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/result.h"
#include "runtime/net/loop.h"
#include "runtime/registry/http_files.h"
#include "runtime/registry/peer_listener.h"
#include "runtime/registry/peer_names.h"

namespace serin::registry {

/// For one thread at a time.
class Peers {
 public:
  /// `names`: as PeerNames::parse() reads them. This server listens at their port, too, at `address`. Errors: kInvalidArgument; as
  /// net::Server::start().
  static Result<std::shared_ptr<Peers>> open(std::string_view names, const std::string& address);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// As HttpFiles::download(): chunks come from peers that have them, the others from `registry`. Without peers, all come from there.
  Status download(const HttpFiles& registry, const std::string& path, const Contents& wanted, const std::string& to);
  /// Peers may take the file from here. Its digest was compared.
  void offer(const Contents& contents, const std::string& file);

 private:
  explicit Peers(std::unique_ptr<PeerNames> names) : names_(std::move(names)) {}

  const std::unique_ptr<PeerNames> names_;
  net::Loops loops_{1};
  std::unique_ptr<PeerListener> listener_;  // ends before its io thread
};

}  // namespace serin::registry
