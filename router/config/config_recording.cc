// config_recording.cc:
//
//   recording: {requests: 1000, keep: 24h, headers: [x-tenant], redact: [/parameters/user], file: digits.recording, key: recording.key}

#include "router/config/config_recording.h"

#include <fmt/format.h>

#include "router/config/sealed_file.h"

namespace serin::router {
namespace {

using config::Node;

constexpr size_t kMostEntries = 32;

Result<std::vector<std::string>> read_list(const Node& owner, std::string_view key) {
  std::vector<std::string> words;
  const auto list = owner.find(key);
  if (!list) return words;
  if (!list->is_list() || list->items().size() > kMostEntries)
    return list->error(fmt::format("must be a list of at most {}", kMostEntries));
  for (const Node& item : list->items()) {
    SERIN_TRY(std::string word, item.text());
    if (word.empty()) return item.error("must not be empty");
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

Result<RecordingConfig> read_recording(const Node& node) {
  SERIN_CHECK(node.allow_only({"requests", "bytes", "keep", "headers", "redact", "file", "key"}));
  RecordingConfig recording;
  SERIN_TRY(const int64_t requests, node.integer("requests", 1, 1'000'000, static_cast<int64_t>(recording.requests)));
  SERIN_TRY(const int64_t bytes, node.integer("bytes", 1 << 20, int64_t{1} << 30, static_cast<int64_t>(recording.bytes)));
  recording.requests = static_cast<size_t>(requests);
  recording.bytes = static_cast<size_t>(bytes);
  SERIN_TRY(const auto keep, node.duration("keep", recording.keep));
  if (keep < std::chrono::hours(1) || keep > std::chrono::hours(24 * 366)) return node.find("keep")->error("must be from 1h to 8784h");
  recording.keep = std::chrono::duration_cast<std::chrono::hours>(keep);
  SERIN_TRY(recording.headers, read_list(node, "headers"));
  SERIN_TRY(recording.redact, read_list(node, "redact"));
  for (const std::string& place : recording.redact)
    if (!rollout::is_json_pointer(place)) return node.find("redact")->error("must be JSON pointers such as /parameters/user");
  SERIN_TRY(recording.file, node.text("file", ""));
  SERIN_TRY(const std::string key, node.text("key", ""));
  if (recording.file.empty() != key.empty()) return node.error("file and key belong together: nothing is written that is not encrypted");
  if (key.empty()) return recording;
  auto read = read_sealing_key(key);
  if (!read) return node.find("key")->error(read.error().message);
  recording.key = *read;
  return recording;
}

}  // namespace serin::router
