// peer_group.h: what all downloads of a process have in common: its peers, how they are called, and what is counted. For peers.cc and its parts.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/metrics.h"
#include "runtime/net/tls.h"
#include "runtime/registry/peer_names.h"

namespace serin::registry {

/// Metrics of a server that shares files, as of runtime/serving/host/METRICS.md.
struct PeerCounts {
  explicit PeerCounts(metrics::Registry& metrics);

  std::shared_ptr<metrics::Counter> from_peers, from_registry, to_peers;  // bytes
  std::shared_ptr<metrics::Counter> refused_chunks;
  std::shared_ptr<metrics::Gauge> refused_peers;
};

struct PeerGroup {
  std::unique_ptr<PeerNames> names;
  std::shared_ptr<const net::TlsContext> tls;  ///< null: peers are called without TLS
  std::string certificate_name;                ///< in the certificates of peers; empty: the HOST of each
  PeerCounts counts;
};

}  // namespace serin::registry
