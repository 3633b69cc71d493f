// keys.h: refuses keys of a file that have no meaning, and names the known key that a misspelled one most likely means.
#pragma once

#include <initializer_list>
#include <string_view>

#include "runtime/base/config.h"
#include "runtime/base/nearest_name.h"

namespace serin::planner {

/// "task.yaml:3:5: unknown key 'batchsize' under task; allowed: ...; did you mean 'batch_size'?"
inline Status only_keys(const config::Node& node, std::initializer_list<std::string_view> keys) {
  const std::vector<Error> refused = node.refused_keys(keys);
  if (refused.empty()) return {};
  Error error = refused.front();
  for (const std::string& key : node.keys())
    if (std::ranges::find(keys, std::string_view(key)) == keys.end()) {
      error.message += did_you_mean(key, keys);
      break;
    }
  return error;
}

}  // namespace serin::planner
