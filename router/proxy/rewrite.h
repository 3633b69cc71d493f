// rewrite.h: Rewrites the heads of forwarded messages.
//
// Heads are generated from the parsed form, never copied raw. Here the parsed head is changed in place.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "router/config/config.h"
#include "router/proxy/grpc_call.h"
#include "runtime/net/message/head_parser.h"

namespace serin::router {

/// The meaning of a request's path. Views of the head's path.
struct Target {
  std::string_view service;
  std::string_view rest;  ///< the part after the model and its version: "/infer", ":predict", "/ready", ""
  bool infer = false;     ///< an inference: only these requests are drawn and judged
  bool model = true;      ///< the path names a model; otherwise its first segment may be a service's name
  // For gRPC calls:
  bool grpc = false;
  bool timeout = false;           ///< its client gives a timeout
  Naming naming = Naming::kNone;  ///< of the model, in its messages
  bool streams = false;           ///< any number of messages each way: nothing waits for the end
};
/// Nothing if the path cannot name a service. The known forms are
///   /v2/models/<service>[/versions/<v>][/infer|/generate]                                     Open Inference Protocol
///   /v1/models/<service>[/versions/<v>|/labels/<l>][:predict|:classify|:regress|/metadata]    TensorFlow Serving
///   /<service>/<method>                                                                       Paddle Serving's pipeline, or unknown
std::optional<Target> parse_target(const net::Head& request);

/// Keeps only the end-to-end headers, without Serin's own, and adds the client to X-Forwarded-For. `peer` is "192.0.2.7:4711". `judged`:
/// the answer must not be compressed.
void rewrite_request(net::Head& request, std::string_view peer, bool judged, std::string& scratch);
/// Replaces `out` by the target of the request on `endpoint`.
void write_target(const net::Head& request, const Target& target, const Endpoint& endpoint, std::string& out);
/// The header with the client's timeout; a forwarded call carries the remaining time.
constexpr std::string_view kGrpcTimeout = "grpc-timeout";
/// Keeps only the end-to-end headers and adds the version that gave the answer.
void rewrite_answer(net::Head& answer, std::string_view version);

}  // namespace serin::router
