// etcd_store.h: The shared store of routers that agree through etcd.
//
//   <prefix>/live/state/<service>            ServiceRecord; written by the leader over the revision it has seen (compare-and-swap)
//   <prefix>/live/trip/<service>/<rollout>   Trip; created once, by any router; removed when the next rollout is written
//   <prefix>/live/leader                     id of the leader; with its lease
//   <prefix>/live/member/<id>                Member; with its lease
//   <prefix>/audit/<service>/<number>        HistoryEntry, a chain (history_chain.h); the latest 10,000
//   <prefix>/verdict/<rollout>               verdict as JSON; the latest 100 of each service
#pragma once

#include <memory>
#include <string>

#include "router/store/etcd_client.h"
#include "router/store/shared_store.h"

namespace serin::store {

/// `prefix`: "/serin". Opens no connection yet.
std::unique_ptr<SharedStore> make_etcd_store(EtcdOptions options, std::string prefix);

}  // namespace serin::store
