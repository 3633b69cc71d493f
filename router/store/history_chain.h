// history_chain.h: Makes changes to the audit log detectable: every entry carries the SHA-256 of itself and of the previous entry.
//
//   chain(entries, last_digest);                                  // before they are written
//   if (const auto broken = find_break(entries)) say(broken->why);  // by any reader, without trusting the sender
//
// A user with write access to the file can also compute a new chain from the changed entry on. But a digest that was noted elsewhere (a log
// collector, a ticket) then no longer matches: the entry noted there has disappeared.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "router/store/store.h"

namespace serin::store {

/// SHA-256 as lower-case hexadecimal digits.
std::string sha256(std::string_view bytes);
/// Fills in `previous` and `digest` of each; `last` is the digest of the existing last entry, empty if there is none.
void chain(std::span<HistoryEntry> entries, std::string last);

struct ChainBreak {
  size_t index;     ///< of the first bad entry
  std::string why;  ///< "entry 17: was changed after it was written"
};
/// Entries without a digest at the beginning come from an older Serin without digests, and are not checked.
std::optional<ChainBreak> find_break(std::span<const HistoryEntry> entries);

}  // namespace serin::store
