// config_store.h: Reads `store:` and `replicas:` of router.yaml.
//
//   store: serin-router.db
//   store: {file: serin-router.db, etcd: {endpoints: ["http://10.0.0.1:2379"]}}     # or
//   store: {file: serin-router.db, kubernetes: {}}
//   replicas: {max: 3, listen: 10.0.0.5:8082, name: a}
#pragma once

#include "router/config/config.h"
#include "runtime/base/config.h"

namespace serin::router {

/// `asked`: of the command line, and before the key. "kubernetes": routers share the Kubernetes API; anything else: the path of a file.
Status read_store(const config::Node& root, const std::string& asked, RouterConfig& config);

/// The address under which others reach `listen`: where that is every address of a pod, the variable POD_IP. kFailedPrecondition: it is not set.
Result<std::string> reachable_address(const Listen& listen);
/// The name of this router: `name`, else with Kubernetes the variable POD_NAME, else empty.
std::string own_name(const ReplicasConfig& config);

}  // namespace serin::router
