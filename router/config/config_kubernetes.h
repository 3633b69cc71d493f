// config_kubernetes.h: Reads how router.yaml reaches the Kubernetes API, which EndpointSlices hold a version's endpoints, and which HTTPRoute
// divides the traffic of a service.
//
//   kubernetes: {server: "https://10.0.0.1:6443", namespace: models, token_file: token, tls: {ca: ca.crt}}      # in a pod: nothing
//   endpoints: {kubernetes: {service: digits-2, port: http, path: /v2/models/digits/versions/2}}
//   http_route: {name: digits, backends: {"1": serin, "2": serin-canary}}
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "router/config/config.h"
#include "router/kubernetes/api_client.h"
#include "runtime/base/config.h"

namespace serin::router {

/// Absent keys come from the pod that the router runs in.
Result<KubernetesConfig> read_kubernetes(const config::Node& node);
Result<SliceSource> read_slices(const config::Node& node, const std::optional<config::Node>& grpc_port);
Result<HttpRouteConfig> read_http_route(const config::Node& node, const ServiceConfig& service);
/// A name that Kubernetes accepts for an object and for a label.
Result<std::string> read_label(const config::Node& owner, std::string_view key, std::string fallback);

/// How to reach the API of Kubernetes. kNotFound: neither a server is given, nor is this a pod.
Result<kubernetes::Cluster> cluster_of(const KubernetesConfig& config);
/// The zone that this router runs in: `zone`, else the variable NODE_ZONE, else empty.
std::string zone_of(const KubernetesConfig& config);

}  // namespace serin::router
