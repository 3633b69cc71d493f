#include "runtime/cli/release/release_notify.h"

#include <fmt/format.h>

#include <chrono>

#include "runtime/base/file.h"
#include "runtime/base/json_at.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/release/child.h"
#include "runtime/cli/tls_flags.h"
#include "runtime/net/session.h"

namespace serin::cli {
namespace {

namespace json = boost::json;

constexpr size_t kLargestFile = 64 << 10;
constexpr int kTries = 3;
constexpr double kBetweenTries = 1;
constexpr std::chrono::seconds kPatience{5};

bool is_url(std::string_view text) { return text.starts_with("http://") || text.starts_with("https://"); }

/// The text is for people in chats (Slack, Mattermost), the rest for programs.
std::string message_of(const ReleaseRecord& record) {
  const std::string outcome = record.text("outcome"), stage = record.text("stage"), reason = record.text("reason");
  const json::value all = record.predicate();
  const std::string model = json_at::text(all, "/model/name");
  const auto version = static_cast<uint64_t>(json_at::number(all, "/model/version"));
  const std::string named = version > 0 ? fmt::format("{}:{}", model, version) : model;
  const std::string text = outcome == "promoted" ? fmt::format("{}: {} is in production", record.text("service"), named)
                                                 : fmt::format("{}: the release of {} ({}) has ended at {}: {}", record.text("service"),
                                                               named, record.text("given"), stage, reason);
  json::object release{{"id", record.text("id")}, {"service", record.text("service")},
                       {"model", model},          {"given", record.text("given")},
                       {"by", record.text("by")}, {"outcome", outcome},
                       {"stage", stage},          {"reason", reason},
                       {"record", record.digest}};
  release["version"] = version > 0 ? json::value(version) : json::value(nullptr);
  return json::serialize(json::object{{"text", text}, {"release", std::move(release)}});
}

Status post(const net::Url& url, const std::string& body) {
  SERIN_TRY(const auto tls, client_tls({}, url.origin));
  net::Outgoing request{.method = "POST", .target = url.path, .body = std::make_shared<const std::string>(body)};
  request.headers.add("content-type", "application/json");
  SERIN_TRY(const net::Response response, net::fetch(url.origin, request, kPatience, tls));
  if (response.status < 200 || response.status > 299) return Error{Code::kUnavailable, fmt::format("it answers {}", response.status)};
  return {};
}

}  // namespace

Result<std::string> notify_url(const std::string& entry) {
  Error no_url = invalid("has an entry that is no URL such as https://hooks.internal/serin, and no file with one");
  std::string text = entry;
  if (!is_url(entry)) {
    if (entry.find("://") != std::string::npos) return no_url;
    SERIN_TRY(text, read_secret_file(entry, kLargestFile));
    text = text.substr(0, text.find_first_of("\r\n"));
    if (!is_url(text) || !net::parse_url(text)) return invalid(entry + ": its first line is no URL");
  }
  if (!net::parse_url(text)) return no_url;
  return text;
}

std::vector<std::string> notify_of(const ReleaseRecord& record, const std::vector<std::string>& entries) {
  std::vector<std::string> faults;
  const std::string body = message_of(record);
  for (const std::string& entry : entries) {
    const auto text = notify_url(entry);
    if (!text) {
      faults.push_back("a receiver is not notified: " + text.error().message);
      continue;
    }
    const net::Url url = *net::parse_url(*text);
    Status sent = post(url, body);
    for (int i = 1; i < kTries && !sent; ++i) {
      if (wait_for_end_signal(kBetweenTries)) throw ReleaseInterrupted{};
      sent = post(url, body);
    }
    if (!sent)
      faults.push_back(fmt::format("the receiver at {}:{} is not notified: {}", url.origin.host, url.origin.port, sent.error().message));
  }
  return faults;
}

}  // namespace serin::cli
