#include "router/kubernetes/collection.h"

#include <fmt/format.h>

#include <optional>
#include <thread>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/sleeper.h"

namespace serin::kubernetes {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

// So short that a connection whose other end is lost without a word is noticed; the server sends a bookmark before it ends a watch.
constexpr std::chrono::seconds kFollowFor{60}, kLongEnough{1};
constexpr int kFailuresUntilListed = 3;
constexpr int kPage = 500;  // objects, as client-go has it

}  // namespace

struct Collection::State {
  State(const Cluster& cluster, std::string collection, Reader to)
      : path(std::move(collection)), reader(std::move(to)), api(cluster), thread([this] { run(); }) {}
  ~State() {
    sleeper.end();
    api.stop();
    thread.join();
  }

  void run();
  std::string with_query(std::string_view part) const {
    return fmt::format("{}{}{}", path, path.find('?') == std::string::npos ? '?' : '&', part);
  }
  Status list();
  Status watch();
  /// One line of a watch. After an error the watch cannot go on.
  Status take(std::string_view line);
  void note(const Status& ended);

  const std::string path;
  const Reader reader;
  ApiClient api;
  router::Sleeper sleeper;

  // Of the thread.
  Backoff backoff;
  std::string version;  // the resourceVersion that is known; empty: nothing is
  int failures = 0;     // in a row
  std::string trouble;  // the last one: the same one is not logged again
  std::thread thread;   // last: it uses the others
};

Status Collection::State::list() {
  const std::string first = with_query(fmt::format("limit={}", kPage));
  std::string listed, next;
  std::vector<json::object> all;
  do {
    SERIN_TRY(json::object answer, api.list(next.empty() ? first : fmt::format("{}&continue={}", first, escaped(next))));
    listed = text_at(answer, {"metadata", "resourceVersion"});
    next = text_at(answer, {"metadata", "continue"});
    if (listed.empty()) return Error{Code::kUnavailable, fmt::format("Kubernetes API: GET {}: the answer is not a list", path)};
    for (json::value& item : answer.at("items").as_array())
      if (item.is_object()) all.push_back(reader.kept ? reader.kept(item.as_object()) : std::move(item.as_object()));
  } while (!next.empty() && sleeper.pause(std::chrono::nanoseconds(0)));
  version = std::move(listed);
  reader.listed(all);
  return {};
}

Status Collection::State::take(std::string_view line) {
  boost::system::error_code failure;
  const json::value event = json::parse(line, failure);
  const json::value* object = !failure && event.is_object() ? event.as_object().if_contains("object") : nullptr;
  if (object == nullptr || !object->is_object())
    return Error{Code::kOutOfRange, fmt::format("Kubernetes API: watch {}: an event is not JSON", path)};
  const json::object& value = object->as_object();
  const std::string type = text_at(event.as_object(), {"type"});
  if (type == "ERROR") {
    const json::value* code = value.if_contains("code");
    const bool expired = code != nullptr && code->is_int64() && code->as_int64() == 410;
    return Error{expired ? Code::kOutOfRange : Code::kUnavailable,
                 fmt::format("Kubernetes API: watch {}: {}", path, text_at(value, {"message"}))};
  }
  if (std::string at = text_at(value, {"metadata", "resourceVersion"}); !at.empty()) version = std::move(at);
  if (type == "ADDED" || type == "MODIFIED" || type == "DELETED") reader.changed(value, type == "DELETED");
  return {};
}

Status Collection::State::watch() {
  const auto began = Clock::now();
  const std::string from = with_query("resourceVersion=" + version);
  Status taken;  // of the first event that could not be
  Status ended = api.watch(from, kFollowFor, [&](std::string_view line) {
    if (!taken) return;
    taken = take(line);
    if (!taken) return;
    backoff.reset();
    note({});
  });
  if (!taken) return taken;
  if (ended && Clock::now() - began < kLongEnough)
    return Error{Code::kUnavailable, fmt::format("Kubernetes API: watch {}: the server ended it at once", path)};
  return ended;
}

/// Logs a change from good to bad and back.
void Collection::State::note(const Status& ended) {
  const std::string now = ended ? "" : ended.error().message;
  if (!ended) ++failures;
  if (ended) failures = 0;
  const std::string before = std::exchange(trouble, now);
  if (before == now) return;
  if (now.empty())
    log::info("Kubernetes API: {} is followed again", path);
  else
    log::warning("{}; what is known stays, and the router tries again", now);
}

void Collection::State::run() {
  while (true) {
    const Status done = version.empty() ? list() : watch();
    if (!sleeper.pause(std::chrono::nanoseconds(0))) return;  // an error is then only the end
    if (done) {
      note(done);
      backoff.reset();
      continue;
    }
    if (done.error().code == Code::kOutOfRange) {  // no trouble: the next list has it all
      log::info("{}; it is listed again", done.error().message);
      version.clear();
    } else {
      note(done);
      const bool answered = done.error().code != Code::kUnavailable;
      if (answered || failures >= kFailuresUntilListed) version.clear();
      reader.failed(done.error());
    }
    if (!sleeper.pause(backoff.next(api.asked_to_wait()))) return;
  }
}

Collection::Collection(const Cluster& cluster, std::string path, Reader reader)
    : state_(std::make_unique<State>(cluster, std::move(path), std::move(reader))) {}
Collection::~Collection() = default;

}  // namespace serin::kubernetes
