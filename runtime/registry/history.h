// history.h: the record of all changes of a model, history.jsonl. Each line names the SHA-256 of the line before it, and the index names
// that of the last one: a changed, missing or added line shows.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace serin::registry {

/// A change. Each line of history.jsonl has the digest of the line before it.
struct Change {
  std::string at, by, event;  ///< event: add, tag, untag, retire, attach or gc
  std::string version, detail;
};

/// `last`: the digest that the index names; empty if nothing has changed yet. Lines after it belong to a change that was not completed.
Result<std::vector<Change>> read_history(const std::string& path, const std::string& last);

/// Adds a line after the one with that digest, and removes lines after it. Returns the digest of the new line.
Result<std::string> append_history(const std::string& path, const std::string& last, const Change& change);

/// The time now, or some days ago, as RFC 3339 in UTC: such texts compare as the times do.
std::string time_now(int days_ago = 0);

}  // namespace serin::registry
