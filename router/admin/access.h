// access.h: Identifies callers of the admin API, by a token or a certificate, and checks their permissions.
//
//   SERIN_TRY(const auto access, Access::open(config.admin, registry));
//   const Admission admission = access->admit(request);                           // the token's owner, and the rate: else 401, 429
//   if (admission.refusal) return *admission.refusal;
//   if (auto refusal = access->require(Role::kAdmin, admission.caller, "promote")) return *refusal;     // 403
//
// If router.yaml names no token file, every client that reaches the port (with a client_ca: and has a certificate) is an admin.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "router/admin/rate_limit.h"
#include "router/config/config.h"
#include "runtime/net/tokens.h"

namespace serin::router {

/// Each role includes the permissions of the one before it.
enum class Role : uint8_t {
  kViewer,    ///< reads
  kOperator,  ///< starts rollouts and steers them, while evidence still judges
  kAdmin,     ///< promotes without evidence
};
std::string_view role_name(Role role);
std::span<const std::string_view> words_of(Role);  ///< the names of all roles, in order

struct Caller {
  std::string name;
  Role role = Role::kViewer;
};

struct Admission {
  Caller caller;
  std::optional<net::Response> refusal;
};

/// Thread-safe.
class Access {
 public:
  static Result<std::unique_ptr<Access>> open(const AdminConfig& config, metrics::Registry& metrics);

  /// `token`: a token from outside the header; empty: none.
  Admission admit(const net::Request& request, std::string_view token = "");
  /// A 403 that names the role needed for `what`, if the caller's role is too low.
  std::optional<net::Response> require(Role role, const Caller& caller, std::string_view what);

 private:
  Access(const AdminConfig& config, metrics::Registry& metrics);

  std::unique_ptr<net::Tokens> tokens_;  // none: no tokens are required
  std::optional<RateLimit> limit_;       // nothing: no limit
  std::shared_ptr<metrics::Counter> unauthenticated_, forbidden_, too_often_;
};

}  // namespace serin::router
