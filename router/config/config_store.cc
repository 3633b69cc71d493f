#include "router/config/config_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "router/config/config_kubernetes.h"
#include "router/config/config_parts.h"
#include "router/config/config_tls.h"

namespace serin::router {
namespace {

using config::Node;
using std::chrono::milliseconds;

Result<EtcdConfig> read_etcd(const Node& node) {
  EtcdConfig etcd;
  SERIN_CHECK(node.allow_only({"endpoints", "prefix", "user", "password_file", "timeout", "tls"}));
  SERIN_TRY(const Node list, node.at("endpoints"));
  for (const Node& item : list.items()) {
    SERIN_TRY(const std::string text, item.text());
    const auto url = net::parse_url(text);
    if (!url || url->path != "/") return item.error(fmt::format("must be a url such as http://10.0.0.1:2379, not '{}'", text));
    etcd.endpoints.push_back(url->origin);
  }
  if (etcd.endpoints.empty()) return list.error("must be a list of at least one url such as http://10.0.0.1:2379");
  SERIN_TRY(etcd.tls, read_client_tls(node, std::ranges::any_of(etcd.endpoints, &net::Origin::secure)));
  SERIN_TRY(etcd.prefix, node.text("prefix", etcd.prefix));
  if (!etcd.prefix.starts_with('/') || etcd.prefix.ends_with('/') || etcd.prefix.size() > kLongestName)
    return node.find("prefix")->error("must begin with '/' and not end with one");
  SERIN_TRY(etcd.user, node.text("user", ""));
  SERIN_TRY(etcd.password_file, node.text("password_file", ""));
  if (etcd.user.empty() != etcd.password_file.empty()) return node.error("user and password_file belong together");
  SERIN_TRY(etcd.timeout, read_milliseconds(node, "timeout", etcd.timeout, milliseconds(10)));
  return etcd;
}

Status read_group(const Node& node, KubernetesConfig& kubernetes) {
  SERIN_CHECK(node.allow_only({"group"}));
  SERIN_TRY(kubernetes.group, read_label(node, "group", kubernetes.group));
  return {};
}

Result<ReplicasConfig> read_replicas(const Node& node) {
  SERIN_CHECK(node.allow_only({"max", "listen", "name"}));
  ReplicasConfig replicas;
  if (!node.find("max")) return node.error("needs max, the maximum number of routers, by which alpha is divided");
  SERIN_TRY(replicas.max, node.integer("max", 1, 64, 1));
  SERIN_TRY(const Node listen, node.at("listen"));
  SERIN_TRY(replicas.listen, read_listen(listen));
  SERIN_TRY(replicas.name, node.text("name", ""));
  if (replicas.name.size() > kLongestName || replicas.name.find('/') != std::string::npos)
    return node.find("name")->error(fmt::format("must be at most {} characters without '/'", kLongestName));
  return replicas;
}

}  // namespace

Status read_store(const Node& root, const std::string& asked, RouterConfig& config) {
  const auto store = root.find("store"), replicas = root.find("replicas");
  std::optional<Node> etcd, kubernetes;
  if (store && store->is_map()) {
    SERIN_CHECK(store->allow_only({"file", "etcd", "kubernetes"}));
    SERIN_TRY(config.store, store->text("file", config.store));
    etcd = store->find("etcd");
    kubernetes = store->find("kubernetes");
  } else if (store) {
    SERIN_TRY(config.store, store->text());
  }
  const bool by_flag = asked == "kubernetes";
  if (!asked.empty() && !by_flag) config.store = asked;
  if (config.store.empty()) return store->error("must be the path of a file");
  if (by_flag && etcd) return etcd->error("does not go with --store kubernetes; routers share one of them");
  if (etcd && kubernetes) return kubernetes->error("etcd is given, too; routers share one of them");
  const auto shared = etcd ? etcd : kubernetes ? kubernetes : by_flag ? std::optional(root) : std::nullopt;
  if (!shared && !replicas) return {};
  if (!shared)
    return replicas->error("several routers need a store that they share: store: {etcd: {endpoints: [...]}}, or {kubernetes: {}}");
  if (!replicas) return shared->error("say how many routers there may be: replicas: {max: 3, listen: ADDRESS:PORT}");
  SERIN_TRY(ReplicasConfig several, read_replicas(*replicas));
  if (etcd) {
    SERIN_TRY(several.etcd, read_etcd(*etcd));
  } else {
    several.kubernetes = config.kubernetes;
    if (kubernetes) SERIN_CHECK(read_group(*kubernetes, *several.kubernetes));
  }
  config.replicas = std::move(several);
  return {};
}

Result<std::string> reachable_address(const Listen& listen) {
  if (!listen.is_any()) return listen.address;
  if (const char* pod = std::getenv("POD_IP"); pod != nullptr && *pod != '\0') return std::string(pod);
  return Error{Code::kFailedPrecondition,
               fmt::format("{} is no address that another router can reach: give one, or set the variable POD_IP "
                           "(fieldRef: status.podIP)",
                           listen.address)};
}

std::string own_name(const ReplicasConfig& config) {
  if (!config.name.empty() || !config.kubernetes) return config.name;
  const char* pod = std::getenv("POD_NAME");
  return pod == nullptr ? "" : pod;
}

}  // namespace serin::router
