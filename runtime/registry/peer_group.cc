#include "runtime/registry/peer_group.h"

namespace serin::registry {

PeerCounts::PeerCounts(metrics::Registry& metrics)
    : from_peers(metrics.counter("serin_registry_peer_bytes_total", "Bytes of files of models taken from peers.")),
      from_registry(metrics.counter("serin_registry_origin_bytes_total", "Bytes of files of models read from remote registries.")),
      to_peers(metrics.counter("serin_registry_peer_sent_bytes_total", "Bytes of files of models sent to peers.")),
      refused_chunks(metrics.counter("serin_registry_peer_refused_chunks_total", "Chunks of peers that were refused for their contents.")),
      refused_peers(metrics.gauge("serin_registry_refused_peers", "Peers from which nothing is taken any more.")) {}

}  // namespace serin::registry
