// rollout_verify.cc: `serin rollout history --verify`: computes the digests of the audit log again on the client. So a user need not trust
// the router, or the programs that may write to its store.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "router/store/history_chain.h"
#include "runtime/cli/rollout/rollout_text.h"

namespace serin::cli {
namespace {

namespace json = boost::json;

std::string text_of(const json::value& value) { return std::string(std::string_view(value.as_string())); }

std::vector<store::HistoryEntry> read_entries(const json::value& history) {
  std::vector<store::HistoryEntry> entries;
  for (const json::value& entry : history.at("history").as_array())
    entries.push_back({.id = entry.at("id").to_number<int64_t>(),
                       .wall_ms = entry.at("wall_ms").to_number<int64_t>(),
                       .service = text_of(history.at("service")),
                       .rollout = text_of(entry.at("rollout")),
                       .event = text_of(entry.at("event")),
                       .actor = text_of(entry.at("actor")),
                       .detail = text_of(entry.at("detail")),
                       .weight_ppm = entry.at("weight_ppm").to_number<uint32_t>(),
                       .previous = text_of(entry.at("previous")),
                       .digest = text_of(entry.at("digest"))});
  return entries;
}

}  // namespace

std::string verify_history(const std::string& body, const std::string& noted, bool& intact) {
  const auto entries = read_entries(json::parse(body));
  intact = false;
  if (const auto broken = store::find_break(entries)) return broken->why + "\n";
  if (!noted.empty() && std::ranges::find(entries, noted, &store::HistoryEntry::digest) == entries.end())
    return fmt::format("no entry has the digest {}: the noted entry is gone, or newer entries have displaced it from the log\n", noted);
  intact = true;
  const auto undigested = std::ranges::count(entries, std::string(), &store::HistoryEntry::digest);
  std::string said = fmt::format("{} entries, none changed, none missing between them", entries.size());
  if (undigested > 0) said += fmt::format("; the first {} are from a version of serin that kept no digests", undigested);
  if (!entries.empty()) said += fmt::format("; the last one's digest, to note elsewhere: {}", entries.back().digest);
  return said + "\n";
}

}  // namespace serin::cli
