// command.h: A person's command to a service: its origin, and what the caller has seen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace serin::router {

struct CommandRequest {
  std::string actor = "cli";         ///< goes to the audit log
  std::optional<uint64_t> if_match;  ///< the epoch that the caller saw; kConflict if it has changed
  std::string reason;
};

}  // namespace serin::router
