// history.h: the record of all changes of a model, history.jsonl. Each line names the SHA-256 of the line before it, and the index names
// that of the last one: a changed or missing line shows. The record is the chain that ends there. In a bucket, a line off the chain is that of a
// change whose writer found that another one had been faster.
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

struct Extended {
  std::string text, last;  ///< last: digest of its last line
};
/// The same for a record that is no file here: `text` with lines for the changes at its end, where all lines before stay. Errors name `name`.
Result<Extended> extend_history(const std::string& name, std::string text, const std::string& last, const std::vector<Change>& changes);

/// The time now, or some days ago, as RFC 3339 in UTC: such texts compare as the times do.
std::string time_now(int days_ago = 0);

}  // namespace serin::registry
