// history_chain.h: an audit log that shows when somebody changed it: every entry carries the SHA-256 of itself and of the entry before it.
//
//   chain(entries, last_digest);                                  // before they are written
//   if (const auto broken = find_break(entries)) say(broken->why);  // by whoever reads them, without trusting who sent them
//
// Who may write the file can also compute a new chain from the changed entry on. What that cannot reach is a digest that was noted elsewhere
// (a log collector, a ticket): an entry noted there is gone afterwards.
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
/// Fills in `previous` and `digest` of each; `last` is the digest of the entry that is there already, empty where there is none.
void chain(std::span<HistoryEntry> entries, std::string last);

struct ChainBreak {
  size_t index;     ///< of the first bad entry
  std::string why;  ///< "entry 17: was changed after it was written"
};
/// Entries without a digest at the beginning were written by a serin that had none, and say nothing.
std::optional<ChainBreak> find_break(std::span<const HistoryEntry> entries);

}  // namespace serin::store
