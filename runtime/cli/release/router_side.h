// router_side.h: what a release asks the router: what is stable, whether a slot is healthy, and the rollout.
//
// Functions throw a Failure (rollout/admin_client.h) where the router refuses or cannot be reached. While a rollout is followed, a router that
// is away for a while is waited for.
#pragma once

#include <boost/json.hpp>
#include <functional>
#include <optional>
#include <string>

#include "router/rollout/spec.h"
#include "runtime/cli/rollout/admin_client.h"

namespace serin::cli {

/// The current or last rollout of the service.
struct RolloutNow {
  std::string id, canary, phase, cause, reason;
  std::string stage;  ///< in words: shadow, canary, 100 %, bake
  size_t step = 0;
  double weight = 0;
  bool over() const { return phase == "Succeeded" || phase == "RolledBack"; }
};

class RouterSide {
 public:
  RouterSide(const AdminFlags& flags, std::string service) : admin_(flags), service_(std::move(service)) {}

  struct Slots {
    std::string stable;  ///< version that has the traffic
    /// Endpoints of a version, and how many are healthy. Nothing: router.yaml has no such version.
    struct Health {
      uint64_t endpoints = 0, healthy = 0;
    };
    std::vector<std::pair<std::string, Health>> versions;
    std::optional<Health> of(const std::string& version) const;
  };
  /// Failure: kNo if router.yaml has no such service.
  Slots slots() const;

  /// The status as the router has it, for print_status(); its rollout is null before the first one.
  boost::json::value status() const;
  static std::optional<RolloutNow> rollout_of(const boost::json::value& status);

  /// `started`, `replaced`, `unchanged` or `blocked`, with the router's sentence and the rollout.
  struct Applied {
    std::string action, message;
    std::optional<RolloutNow> rollout;
  };
  Applied apply(const std::string& document, bool dry_run) const;
  void abort(const std::string& reason) const;

  /// Entries of the audit log of one rollout.
  boost::json::array history(const std::string& rollout) const;
  /// The verdict as the router has it; nothing: there is none.
  std::optional<std::string> verdict(const std::string& rollout) const;

  /// Calls it again while the router cannot be reached, for at most five minutes. Throws ReleaseInterrupted.
  static void patiently(const std::function<void()>& call);

 private:
  std::string path(std::string_view before, std::string_view after = "") const;
  AdminClient admin_;
  std::string service_;
};

/// The document that starts a rollout: the rules of the policy, and what names the version.
std::string rollout_document(const std::string& service, const std::string& slot, const std::string& revision, const std::string& rules);

/// In which part of its steps a rollout is, or was rolled back. `before`: what it was when it was looked at last.
std::string stage_in_words(const RolloutNow& now, const rollout::Spec& spec, const std::string& before);

}  // namespace serin::cli
