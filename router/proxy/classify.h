// classify.h: The class of a request in each slice of the specification (rollout/slice_guards.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "router/rollout/observation.h"
#include "router/rollout/spec.h"
#include "runtime/net/http.h"
#include "runtime/protocol/json/json_pointer.h"

namespace serin::router {

/// Whether the class of a request depends on its body. Then it is placed after the whole body has come, up to the limit kept for a retry.
bool reads_body(const std::vector<rollout::Slice>& slices);

/// The request, as far as it has come.
struct Classified {
  const net::Headers& headers;
  std::string_view body;
  bool complete = false;           ///< this is the whole body
  std::optional<uint64_t> length;  ///< announced
};

/// A class is a text of 1 to 64 bytes in UTF-8 without control characters, quotes and backslashes, because it appears in reasons and logs.
/// Other values, and those that the request does not have, are no class. Null: there are no slices.
/// Nor is a label, which only with_label() knows.
rollout::Classes classify(const std::vector<rollout::Slice>& slices, const Classified& request, protocol::JsonPointerReader& json);

/// The same of a mirrored request: the class by label is stable's label.
rollout::Classes with_label(const rollout::Classes& classes, const std::vector<rollout::Slice>& slices,
                            const std::optional<rollout::Difference>& difference);

}  // namespace serin::router
