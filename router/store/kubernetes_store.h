// kubernetes_store.h: The shared store of routers that agree through the Kubernetes API.
//
// All objects have the label serin.dev/routers=<group>, and the label serin.dev/type:
//
//   RouterRecord  state     ServiceRecord, audit log and names of verdicts; written by the leader by compare-and-swap (kubernetes_state.h)
//                 trip      Trip; created once, by any router; removed after the next rollout was written
//                 member    Member; of one router
//                 audit     100 entries of the audit log; verdict: as JSON. Both never change
//   Lease         <group>   held by the leader: "<id>/<run>"
//                 <group>-<id>   held by a router that is alive
//
// A router that begins to lead first writes a mark to each state. So a former leader that still believes to lead fails at its next write.
#pragma once

#include <memory>
#include <string>

#include "router/kubernetes/api_client.h"
#include "router/store/shared_store.h"

namespace serin::store {

/// `group`: a label value, "serin-router". Opens no connection yet.
std::unique_ptr<SharedStore> make_kubernetes_store(kubernetes::Cluster cluster, std::string group);

}  // namespace serin::store
