// restore.h: Computes the state in which a service starts after a restart. Pure, so that every way to be killed is a row of a test.
//
// There are two records. The database may have a last change that was never applied. The weights page may have a last fall that was never
// written to the database. The smaller weight applies, and a verdict that only the page has is valid.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/config/config.h"
#include "router/store/store.h"
#include "router/store/weights_page.h"

namespace serin::router {

inline constexpr std::string_view kRestarted = "restarted";  ///< the event of a rollout that continues

struct Restored {
  std::string stable;
  uint64_t epoch = 0;
  std::optional<store::RolloutRecord> rollout;
  struct Event {
    std::string event, detail;
  };
  std::vector<Event> events;  ///< the changes of this restart, for the audit log and the log; empty: none
};

/// Neither record nor page: the first start ever. `stable_of_service`: the stable version of the service, of which this is a further track
/// (tracks.h); nothing: this is the service itself.
Restored restore(const ServiceConfig& config, const std::optional<store::ServiceRecord>& record,
                 const std::optional<store::WeightsPage::Found>& page, const std::optional<std::string>& stable_of_service = {});

/// Of a track that the configuration no longer permits (tracks.h): its rollout, if one is under way, is over.
Restored restore_gone(const store::ServiceRecord& record);

/// Parses the output of print_spec; an error if another version of Serin wrote it in a different form.
Result<rollout::Spec> stored_spec(const store::RolloutRecord& record);

}  // namespace serin::router
