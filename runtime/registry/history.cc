#include "runtime/registry/history.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>

#include "runtime/base/file.h"
#include "runtime/registry/sha256.h"

namespace serin::registry {
namespace {

namespace json = boost::json;

constexpr size_t kMostBytes = 256 << 20;

struct Line {
  std::string text, digest;
};

/// Up to the line with the digest `last`.
Result<std::vector<Line>> lines_of(const std::string& path, const std::string& last) {
  std::vector<Line> lines;
  if (last.empty()) return lines;
  SERIN_TRY(const std::vector<std::string> texts, read_lines(path, kMostBytes));
  for (const std::string& text : texts) {
    lines.push_back({text, digest_of(text)});
    if (lines.back().digest == last) return lines;
  }
  return Error{Code::kCorrupt, fmt::format("{}: the last line that index.json names is missing or was changed", path)};
}

}  // namespace

Result<std::vector<Change>> read_history(const std::string& path, const std::string& last) {
  SERIN_TRY(const std::vector<Line> lines, lines_of(path, last));
  std::vector<Change> changes;
  std::string before;
  for (const Line& line : lines) {
    boost::system::error_code error;
    const json::value value = json::parse(line.text, error);
    const auto text = [&](std::string_view key) {
      const json::value* found = error || !value.is_object() ? nullptr : value.get_object().if_contains(key);
      return found && found->is_string() ? std::string(found->get_string()) : std::string();
    };
    if (error || text("previous") != before)
      return Error{Code::kCorrupt, fmt::format("{}: line {} does not follow the line before it", path, changes.size() + 1)};
    changes.push_back({text("at"), text("by"), text("event"), text("version"), text("detail")});
    before = line.digest;
  }
  return changes;
}

Result<std::string> append_history(const std::string& path, const std::string& last, const Change& change) {
  SERIN_TRY(const std::vector<Line> lines, lines_of(path, last));
  std::string all;
  for (const Line& line : lines) all.append(line.text).append("\n");
  const json::object object{{"at", change.at},           {"by", change.by},         {"event", change.event},
                            {"version", change.version}, {"detail", change.detail}, {"previous", last}};
  const std::string added = json::serialize(object);
  SERIN_CHECK(write_file_atomically(path, all + added + "\n"));
  return digest_of(added);
}

std::string time_now(int days_ago) {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now()) - std::chrono::days(days_ago);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

}  // namespace serin::registry
