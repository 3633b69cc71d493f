// access.h: who asks the admin API, by a token or by a certificate, and whether they may.
//
//   SERIN_TRY(const auto access, Access::open(config.admin, registry));
//   const Admission admission = access->admit(request);                           // whose token, and not too often: else 401, 429
//   if (admission.refusal) return *admission.refusal;
//   if (auto refusal = access->require(Role::kAdmin, admission.caller, "promote")) return *refusal;     // 403
//
// Where router.yaml names no file of tokens, whoever reaches the port (with a client_ca: and has a certificate) is an admin.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "router/admin/rate_limit.h"
#include "router/config/config.h"
#include "runtime/net/tokens.h"

namespace serin::router {

/// Each may what the one before it may.
enum class Role : uint8_t {
  kViewer,    ///< reads
  kOperator,  ///< starts rollouts and steers them, while evidence goes on judging
  kAdmin,     ///< promotes without evidence
};
std::string_view role_name(Role role);

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

  /// `token`: one that came elsewhere than in the header; empty: none did.
  Admission admit(const net::Request& request, std::string_view token = "");
  /// A 403 that says what `what` needs, where the caller's role is too small.
  std::optional<net::Response> require(Role role, const Caller& caller, std::string_view what);

 private:
  Access(const AdminConfig& config, metrics::Registry& metrics);

  std::unique_ptr<net::Tokens> tokens_;  // none: no tokens are asked for
  std::optional<RateLimit> limit_;       // nothing: no limit
  std::shared_ptr<metrics::Counter> unauthenticated_, forbidden_, too_often_;
};

}  // namespace serin::router
