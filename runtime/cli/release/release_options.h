// release_options.h: what is on the command line of `serin release`.
#pragma once

#include <string>
#include <vector>

#include "runtime/cli/rollout/admin_client.h"

namespace serin::cli {

struct ReleaseOptions {
  AdminFlags admin;
  std::string model, service, data, policy, by, key;
  std::string registry;
  std::vector<std::string> origin, slots;
  bool dry_run = false, again = false, json = false;
};

}  // namespace serin::cli
