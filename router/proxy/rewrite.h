// rewrite.h: what of a message is passed on. Heads are made anew from what was parsed, never copied raw; here the parsed head is changed in place.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "router/config/config.h"
#include "runtime/net/message/head_parser.h"

namespace serin::router {

/// What the path of a request asks for. Views of the head's path.
struct Target {
  std::string_view service;
  std::string_view rest;  ///< what follows the model and its version: "/infer", ":predict", "/ready", ""
  bool infer = false;     ///< an inference: the only requests that are drawn and judged
  bool model = true;      ///< the path says that this is a model; otherwise its first segment may be a service's name
  // Of calls of gRPC:
  bool grpc = false;
  bool timeout = false;      ///< its client says how long it waits
  bool names_model = false;  ///< by its messages
  bool streams = false;      ///< any number of messages each way: nothing waits for the end
};
/// Nothing where the path can name no service. Known are
///   /v2/models/<service>[/versions/<v>][/infer|/generate]                                     Open Inference Protocol
///   /v1/models/<service>[/versions/<v>|/labels/<l>][:predict|:classify|:regress|/metadata]    TensorFlow Serving
///   /<service>/<method>                                                                       Paddle Serving's pipeline, and what nobody knows
std::optional<Target> parse_target(const net::Head& request);

/// Leaves the end-to-end headers only, without Serin's own, and adds the client to X-Forwarded-For. `peer` is "192.0.2.7:4711"; an answer that is to be
/// `judged` must not come packed.
void rewrite_request(net::Head& request, std::string_view peer, bool judged, std::string& scratch);
/// Replaces `out` by the target that the request has on `endpoint`.
void write_target(const net::Head& request, const Target& target, const Endpoint& endpoint, std::string& out);
/// The header that says how long the client waits; what is passed on says how long is left.
constexpr std::string_view kGrpcTimeout = "grpc-timeout";
/// Leaves the end-to-end headers only and marks the answer with the version that gave it.
void rewrite_answer(net::Head& answer, std::string_view version);

}  // namespace serin::router
