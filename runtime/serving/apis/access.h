// access.h: decides which caller may make which call.
//
// There are three kinds of calls: inference, queries and admin requests (load, unload, shared memory, settings). The kind follows from
// method and normalised path alone. Over gRPC, an unknown method is an admin request; over HTTP, admin requests have their own paths. They
// are answered at the admin port, and at the client ports only if that is configured. Probes need no credentials.
//
// With a file of tokens (net/tokens.h), a caller needs a token or a certificate. Its role is `read` for queries, `infer` for inference, or
// `admin` for admin requests; each role includes the rights of those before it. In addition, groups of calls may require a header
// (restricted_apis.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/net/grpc.h"
#include "runtime/net/tokens.h"
#include "runtime/serving/apis/restricted_apis.h"

namespace serin::serving {

enum class Right : uint8_t { kNone, kRead, kInfer, kAdmin };  ///< rising
Right right_of_http(std::string_view method, std::string_view path);
Right right_of_grpc(std::string_view path);

/// Thread-safe.
class Access {
 public:
  struct Options {
    std::string tokens;               ///< path of a file; empty: every caller that reaches a port may use it
    bool admin_on_data_port = false;  ///< accept admin requests at the client ports, too
    std::string order_of_clients;     ///< path of an admin request that the client ports always accept; empty: none
    RestrictedApis http, grpc;        ///< calls that require a header
  };
  static Result<std::unique_ptr<Access>> open(Options options, metrics::Registry& metrics);

  enum class Port : uint8_t { kData, kAdmin };
  struct Refusal {
    net::GrpcStatus status;  ///< kUnauthenticated or kPermissionDenied; kUnavailable if a header is missing over gRPC, as in Triton
    std::string message;
    bool bad_token = false;  ///< the token is unknown
  };
  std::optional<Refusal> refuse(Right right, Port port, const net::Headers& headers, const net::PeerCertificate* certificate);
  /// The same for a call, by its method and path.
  std::optional<Refusal> refuse_http(const net::Request& request, Port port);
  /// `known`: the method exists.
  std::optional<Refusal> refuse_grpc(std::string_view path, bool known, const net::Headers& headers,
                                     const net::PeerCertificate* certificate);

 private:
  explicit Access(Options options) : options_(std::move(options)) {}
  Port port_of(std::string_view path, Port port) const { return path == options_.order_of_clients ? Port::kAdmin : port; }
  std::optional<Refusal> look(Right right, Port port, const net::Headers& headers, const net::PeerCertificate* certificate);

  const Options options_;
  std::unique_ptr<net::Tokens> tokens_;  // null: no tokens are required
  std::shared_ptr<metrics::Counter> unauthenticated_, forbidden_;
};

/// Makes a 401 (with WWW-Authenticate) or 403.
net::Response refusal_response(const Access::Refusal& refusal);

}  // namespace serin::serving
