#include "runtime/registry/history.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <set>
#include <utility>

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
Result<std::vector<Line>> lines_of(const std::string& name, const std::vector<std::string>& texts, const std::string& last) {
  std::vector<Line> lines;
  if (last.empty()) return lines;
  for (const std::string& text : texts) {
    lines.push_back({text, digest_of(text)});
    if (lines.back().digest == last) return lines;
  }
  return Error{Code::kCorrupt, fmt::format("{}: the last line that index.json names is missing or was changed", name)};
}

Result<std::vector<Line>> lines_in(const std::string& path, const std::string& last) {
  if (last.empty()) return std::vector<Line>();
  SERIN_TRY(const std::vector<std::string> texts, read_lines(path, kMostBytes));
  return lines_of(path, texts, last);
}

std::string line_of(const Change& change, const std::string& previous) {
  return json::serialize(json::object{{"at", change.at},
                                      {"by", change.by},
                                      {"event", change.event},
                                      {"version", change.version},
                                      {"detail", change.detail},
                                      {"previous", previous}});
}

}  // namespace

Result<std::vector<Change>> read_history(const std::string& path, const std::string& last) {
  SERIN_TRY(const std::vector<Line> lines, lines_in(path, last));
  std::vector<std::pair<Change, std::string>> read;  // with the digest of the line before
  std::set<std::string> known{""};
  for (const Line& line : lines) {
    boost::system::error_code error;
    const json::value value = json::parse(line.text, error);
    const auto text = [&](std::string_view key) {
      const json::value* found = error || !value.is_object() ? nullptr : value.get_object().if_contains(key);
      return found && found->is_string() ? std::string(found->get_string()) : std::string();
    };
    read.push_back({{text("at"), text("by"), text("event"), text("version"), text("detail")}, text("previous")});
    if (error || !known.contains(read.back().second))
      return Error{Code::kCorrupt, fmt::format("{}: line {} does not follow a line before it", path, read.size())};
    known.insert(line.digest);
  }
  std::vector<Change> changes;
  std::string wanted = last;
  for (size_t i = lines.size(); i-- > 0;) {
    if (lines[i].digest != wanted) continue;
    changes.push_back(std::move(read[i].first));
    wanted = read[i].second;
  }
  std::ranges::reverse(changes);
  return changes;
}

Result<std::string> append_history(const std::string& path, const std::string& last, const Change& change) {
  SERIN_TRY(const std::vector<Line> lines, lines_in(path, last));
  std::string all;
  for (const Line& line : lines) all.append(line.text).append("\n");
  const std::string added = line_of(change, last);
  SERIN_CHECK(write_file_atomically(path, all + added + "\n"));
  return digest_of(added);
}

Result<Extended> extend_history(const std::string& name, std::string text, const std::string& last, const std::vector<Change>& changes) {
  std::vector<std::string> texts;
  for (size_t at = 0; at < text.size(); at += texts.back().size() + 1) texts.push_back(text.substr(at, text.find('\n', at) - at));
  SERIN_CHECK(lines_of(name, texts, last));
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  Extended made{std::move(text), last};
  for (const Change& change : changes) {
    const std::string added = line_of(change, made.last);
    made.text.append(added).append("\n");
    made.last = digest_of(added);
  }
  return made;
}

std::string time_now(int days_ago) {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now()) - std::chrono::days(days_ago);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

}  // namespace serin::registry
