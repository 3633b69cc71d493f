// applied.h: The answer to PUT /v1/rollouts/{service}.
#pragma once

#include <string>

#include "router/view/status.h"

namespace serin::router::view {

struct AppliedAnswer {
  std::string action, message;
  bool specification_differs = false;
  std::string current, wanted;
  Status status;
};
inline constexpr auto kApplied = schema::object<AppliedAnswer>(
    "Applied", "What came of a specification that was applied.",
    schema::field(
        "action", &AppliedAnswer::action,
        "started, replaced (the one that ran was ended), unchanged (it runs, or was promoted), or blocked (it was rolled back). With "
        "dry_run: what it would be."),
    schema::field("message", &AppliedAnswer::message, "A sentence for users."),
    schema::field("specification_differs", &AppliedAnswer::specification_differs,
                  "Nothing was started, and the rollout of this version and revision has other rules than those given."),
    schema::field("current", &AppliedAnswer::current, "The specification of the rollout that decides, as YAML; empty: there is none."),
    schema::field("wanted", &AppliedAnswer::wanted, "The specification that was given, in the same form."),
    schema::field<kStatus>("status", &AppliedAnswer::status, "As GET gives it."));

}  // namespace serin::router::view
