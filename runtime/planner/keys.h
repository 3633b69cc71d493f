// keys.h: what the readers of the planner's files share: keys that have no meaning are refused, with the known key that is most likely meant; bytes.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "runtime/base/config.h"
#include "runtime/base/nearest_name.h"
#include "runtime/planner/fit.h"

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

/// "512Mi", "16G"; an error names the place.
inline Result<double> read_bytes(const config::Node& node) {
  SERIN_TRY(const std::string text, node.text());
  const auto bytes = parse_bytes(text);
  if (!bytes) return node.error("must be bytes, such as 512Mi or 16G");
  return static_cast<double>(*bytes);
}

}  // namespace serin::planner
