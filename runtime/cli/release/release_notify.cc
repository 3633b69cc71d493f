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
struct Message {
  std::string text;
  json::object release;

  std::string whole() const { return json::serialize(json::object{{"text", text}, {"release", release}}); }
  /// Without the reason, which may be long.
  std::string subject() const {
    const json::value all = release;
    const std::string outcome = json_at::text(all, "/outcome"), stage = json_at::text(all, "/stage");
    if (outcome == "promoted") return "[serin] " + text;
    return fmt::format("[serin] {}: the release of {} has ended at {} ({})", json_at::text(all, "/service"), json_at::text(all, "/model"),
                       stage, outcome);
  }
};

Message message_of(const ReleaseRecord& record) {
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
  return {text, std::move(release)};
}

Status post(const net::Url& url, const std::string& body) {
  SERIN_TRY(const auto tls, client_tls({}, url.origin));
  net::Outgoing request{.method = "POST", .target = url.path, .body = std::make_shared<const std::string>(body)};
  request.headers.add("content-type", "application/json");
  SERIN_TRY(const net::Response response, net::fetch(url.origin, request, kPatience, tls));
  if (response.status < 200 || response.status > 299) return Error{Code::kUnavailable, fmt::format("it answers {}", response.status)};
  return {};
}

/// Once.
Status tell(const Receiver& receiver, const std::optional<net::Url>& url, const Message& message) {
  if (url) return post(*url, message.whole());
  return send_mail(*receiver.mail, message.subject(), message.text + "\n", json::serialize(message.release));
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

std::vector<std::string> notify_of(const ReleaseRecord& record, const std::vector<Receiver>& receivers) {
  std::vector<std::string> faults;
  const Message message = message_of(record);
  for (const Receiver& receiver : receivers) {
    std::optional<net::Url> url;
    if (!receiver.mail) {
      const auto text = notify_url(receiver.url);
      if (!text) {
        faults.push_back("a receiver is not notified: " + text.error().message);
        continue;
      }
      url = net::parse_url(*text);
    }
    Status told = tell(receiver, url, message);
    for (int i = 1; i < kTries && !told; ++i) {
      if (wait_for_end_signal(kBetweenTries)) throw ReleaseInterrupted{};
      told = tell(receiver, url, message);
    }
    if (told) continue;
    const std::string place = url ? fmt::format("{}:{}", url->origin.host, url->origin.port) : receiver.mail->server;
    faults.push_back(fmt::format("the receiver at {} is not notified: {}", place, told.error().message));
  }
  return faults;
}

}  // namespace serin::cli
