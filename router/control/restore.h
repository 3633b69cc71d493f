// restore.h: what a service begins with after a restart. Pure, so that every way to be killed is a row of a test.
//
// Two witnesses: the database, whose last change may never have been applied, and the weights page, whose last fall may never have been
// written to the database. The smaller weight of the two counts, and a verdict that only the page knows is a verdict.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/config/config.h"
#include "router/store/store.h"
#include "router/store/weights_page.h"

namespace serin::router {

inline constexpr std::string_view kRestarted = "restarted";  ///< the event of a rollout that goes on

struct Restored {
  std::string stable;
  uint64_t epoch = 0;
  std::optional<store::RolloutRecord> rollout;
  struct Event {
    std::string event, detail;
  };
  std::vector<Event> events;  ///< what this restart changed, for the audit log and the log; empty: nothing
};

/// Neither record nor page: the very first start.
Restored restore(const ServiceConfig& config, const std::optional<store::ServiceRecord>& record,
                 const std::optional<store::WeightsPage::Found>& page);

/// What print_spec wrote, read again; an error where another version of Serin wrote it otherwise.
Result<rollout::Spec> stored_spec(const store::RolloutRecord& record);

}  // namespace serin::router
