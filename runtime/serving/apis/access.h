// access.h: who may call what of the server.
//
// Calls are of three kinds, told by method and path alone, after the path was normalised: inference, questions, and orders to the server itself (load,
// unload, shared memory, settings). Over gRPC what is not known to be one of the first two is an order; over HTTP orders have paths of their own. They are answered at the admin port, and at the ports of
// clients only where that was asked for. Probes are answered to everybody.
//
// With a file of tokens (net/tokens.h) a caller needs one, or a certificate, of role `read` for questions, `infer` for inference, `admin` for orders; each
// role may what those before it may. Beside that, groups of calls may ask for a header (restricted_apis.h).
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
    std::string tokens;               ///< a file; empty: whoever reaches a port may use it
    bool admin_on_data_port = false;  ///< orders are taken at the ports of clients, too
    std::string order_of_clients;     ///< by its path, the one that is taken there in any case; empty: none
    RestrictedApis http, grpc;        ///< calls that ask for a header
  };
  static Result<std::unique_ptr<Access>> open(Options options, metrics::Registry& metrics);

  enum class Port : uint8_t { kData, kAdmin };
  struct Refusal {
    net::GrpcStatus status;  ///< kUnauthenticated or kPermissionDenied; kUnavailable where a header is missing over gRPC, as Triton has it
    std::string message;
    bool bad_token = false;  ///< one came, but it is not known
  };
  std::optional<Refusal> refuse(Right right, Port port, const net::Headers& headers, const net::PeerCertificate* certificate);
  /// The same of a call by its method and path.
  std::optional<Refusal> refuse_http(const net::Request& request, Port port);
  /// `known`: there is such a method.
  std::optional<Refusal> refuse_grpc(std::string_view path, bool known, const net::Headers& headers,
                                     const net::PeerCertificate* certificate);

 private:
  explicit Access(Options options) : options_(std::move(options)) {}
  Port port_of(std::string_view path, Port port) const { return path == options_.order_of_clients ? Port::kAdmin : port; }
  std::optional<Refusal> look(Right right, Port port, const net::Headers& headers, const net::PeerCertificate* certificate);

  const Options options_;
  std::unique_ptr<net::Tokens> tokens_;  // null: none are asked for
  std::shared_ptr<metrics::Counter> unauthenticated_, forbidden_;
};

/// 401 (with WWW-Authenticate) or 403.
net::Response refusal_response(const Access::Refusal& refusal);

}  // namespace serin::serving
