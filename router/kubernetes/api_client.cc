// api_client.cc: one request each. Only net::Session repeats one: if a kept connection ends before a byte of the answer came. A change may then
// have been made twice, so writers recognise their own by its resourceVersion.

#include "router/kubernetes/api_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <thread>

#include "kernels/mutex.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/number.h"
#include "runtime/base/sleeper.h"
#include "runtime/net/session.h"
#include "runtime/net/target.h"

namespace serin::kubernetes {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";
constexpr std::chrono::seconds kTokenFor{60}, kWatchFor{300};
constexpr std::chrono::seconds kLongestAskedFor{60};
constexpr size_t kLargestAnswer = size_t{64} << 20, kLargestEvent = size_t{8} << 20, kLongestReason = 300,
                 kLargestSecret = size_t{64} << 10;

std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  return text;
}

std::shared_ptr<const std::string> text_of(const json::value& value) { return std::make_shared<const std::string>(json::serialize(value)); }

/// The error of an answer that is no success: a Status object, or the text of a proxy before the server.
Error error_of(const std::string& request, int status, std::string_view body) {
  boost::system::error_code failure;
  const json::value value = json::parse(body, failure);
  std::string reason, message(body.substr(0, kLongestReason));
  if (!failure && value.is_object()) {
    reason = text_at(value.as_object(), {"reason"});
    message = text_at(value.as_object(), {"message"}).substr(0, kLongestReason);
  }
  const Code code = status == 401 || status == 403                   ? Code::kPermissionDenied
                    : status == 404                                  ? Code::kNotFound
                    : status == 409                                  ? (reason == "AlreadyExists" ? Code::kAlreadyExists : Code::kConflict)
                    : status == 410                                  ? Code::kOutOfRange
                    : status == 429 || status >= 500 || status < 400 ? Code::kUnavailable
                                                                     : Code::kInvalidArgument;
  return {code, fmt::format("Kubernetes API: {}: {} {}", request, status, message)};
}

}  // namespace

std::string as_name(std::string_view text, size_t limit) {
  std::string name;
  for (const char c : text.substr(0, limit)) {
    const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    name += (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') ? lower : '-';
  }
  return name;
}

std::string escaped(std::string_view text) {
  std::string out;
  net::append_escaped(text, "/", out);
  return out;
}

const json::value* find_at(const json::object& object, std::initializer_list<std::string_view> path) {
  const json::object* at = &object;
  const json::value* value = nullptr;
  for (const std::string_view key : path) {
    if (at == nullptr) return nullptr;
    value = at->if_contains(key);
    at = value != nullptr && value->is_object() ? &value->as_object() : nullptr;
    if (value == nullptr) return nullptr;
  }
  return value;
}

const json::array& array_at(const json::object& object, std::initializer_list<std::string_view> path) {
  static const json::array none;
  const json::value* value = find_at(object, path);
  return value != nullptr && value->is_array() ? value->as_array() : none;
}

std::string text_at(const json::object& object, std::initializer_list<std::string_view> path) {
  const json::value* value = find_at(object, path);
  return value != nullptr && value->is_string() ? std::string(std::string_view(value->as_string())) : "";
}

Result<Cluster> in_cluster() {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr)
    return Error{Code::kNotFound, "KUBERNETES_SERVICE_HOST is not set, so this is no pod: name the API server"};
  const auto number = parse_number<uint16_t>(port);
  if (!number) return invalid(fmt::format("KUBERNETES_SERVICE_PORT is '{}', not a port", port));
  Cluster cluster{.server = {host, *number, /*secure=*/true}, .token_file = std::string(kAccount) + "token"};
  SERIN_TRY(const std::string name_space, read_file(std::string(kAccount) + "namespace", kLargestSecret));
  cluster.name_space = trimmed(name_space);
  SERIN_TRY(cluster.tls, net::TlsContext::for_client({.ca = std::string(kAccount) + "ca.crt"}));
  return cluster;
}

struct ApiClient::State {
  explicit State(Cluster given)
      : cluster(std::move(given)), session({.connect_timeout = cluster.timeout, .response_bytes = kLargestAnswer, .tls = cluster.tls}) {}

  const Cluster cluster;
  net::Session session;
  Mutex mutex;
  std::string token SERIN_GUARDED_BY(mutex);
  Clock::time_point token_until SERIN_GUARDED_BY(mutex){};
  Clock::time_point quiet_until SERIN_GUARDED_BY(mutex){};

  Result<std::string> held_token();
  void forget_token();
  /// What the server says about when to come back.
  void heed(const net::Response& answer);
  Result<net::Outgoing> request(std::string_view method, const std::string& path, std::shared_ptr<const std::string> body,
                                std::string_view type);
  Result<json::object> call(std::string_view method, const std::string& path, const std::shared_ptr<const std::string>& body = nullptr,
                            std::string_view type = "application/json");
};

Result<std::string> ApiClient::State::held_token() {
  if (cluster.token_file.empty()) return std::string();
  const MutexLock lock(mutex);
  const auto now = Clock::now();
  if (now < token_until) return token;
  auto text = read_file(cluster.token_file, kLargestSecret);
  if (!text) return text.error().in("the token of the Kubernetes API");
  token = trimmed(*std::move(text));
  token_until = now + kTokenFor;
  return token;
}

void ApiClient::State::forget_token() {
  const MutexLock lock(mutex);
  token_until = {};
}

void ApiClient::State::heed(const net::Response& answer) {
  const bool refused = answer.status == 429 || answer.status >= 500;
  const auto seconds = refused ? parse_number<uint32_t>(answer.headers.get("Retry-After")) : std::nullopt;
  const MutexLock lock(mutex);
  quiet_until = seconds ? Clock::now() + std::min(std::chrono::seconds(*seconds), kLongestAskedFor) : Clock::time_point();
}

Result<net::Outgoing> ApiClient::State::request(std::string_view method, const std::string& path, std::shared_ptr<const std::string> body,
                                                std::string_view type) {
  SERIN_TRY(const std::string shown, held_token());
  net::Outgoing request{.method = std::string(method), .target = path, .body = std::move(body)};
  request.headers.set("Accept", "application/json");
  request.headers.set("User-Agent", "serin");
  if (request.body) request.headers.set("Content-Type", type);
  if (!shown.empty()) request.headers.set("Authorization", "Bearer " + shown);
  return request;
}

Result<json::object> ApiClient::State::call(std::string_view method, const std::string& path,
                                            const std::shared_ptr<const std::string>& body, std::string_view type) {
  const std::string name = fmt::format("{} {}", method, path);
  for (bool again = false;; again = true) {
    SERIN_TRY(const net::Outgoing outgoing, request(method, path, body, type));
    const auto response = session.send(cluster.server, outgoing, cluster.timeout);
    if (!response) return Error{Code::kUnavailable, fmt::format("Kubernetes API: {}: {}", name, response.error().message)};
    heed(*response);
    if (response->status == 401 && !again && !cluster.token_file.empty()) {  // nothing was executed
      forget_token();
      continue;
    }
    if (response->status < 200 || response->status > 299) return error_of(name, response->status, response->body);
    boost::system::error_code failure;
    json::value answer = json::parse(response->body, failure);
    if (failure || !answer.is_object())
      return Error{Code::kUnavailable, fmt::format("Kubernetes API: {}: the answer is not a JSON object", name)};
    return std::move(answer.as_object());
  }
}

ApiClient::ApiClient(Cluster cluster) : state_(std::make_unique<State>(std::move(cluster))) {}
ApiClient::~ApiClient() = default;

const Cluster& ApiClient::cluster() const { return state_->cluster; }
Result<json::object> ApiClient::get(const std::string& path) { return state_->call("GET", path); }
Result<json::object> ApiClient::list(const std::string& path) {
  SERIN_TRY(json::object answer, get(path));
  json::value* items = answer.if_contains("items");
  if (items != nullptr && items->is_null()) *items = json::array();
  if (items == nullptr || !items->is_array())
    return Error{Code::kUnavailable, fmt::format("Kubernetes API: GET {}: the answer is not a list", path)};
  return answer;
}
Result<json::object> ApiClient::create(const std::string& collection, const json::object& object) {
  return state_->call("POST", collection, text_of(object));
}
Result<json::object> ApiClient::replace(const std::string& path, const json::object& object) {
  return state_->call("PUT", path, text_of(object));
}
Result<json::object> ApiClient::merge(const std::string& path, const json::object& patch) {
  return state_->call("PATCH", path, text_of(patch), "application/merge-patch+json");
}
Result<json::object> ApiClient::patch(const std::string& path, const json::array& operations) {
  return state_->call("PATCH", path, text_of(operations), "application/json-patch+json");
}
Status ApiClient::remove(const std::string& path) {
  SERIN_CHECK(state_->call("DELETE", path));
  return {};
}
void ApiClient::stop() { state_->session.stop(); }

std::chrono::milliseconds ApiClient::asked_to_wait() const {
  const MutexLock lock(state_->mutex);
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(state_->quiet_until - Clock::now()), std::chrono::milliseconds(0));
}

Status ApiClient::watch(const std::string& path, std::chrono::seconds at_most, const std::function<void(std::string_view)>& event) {
  const std::string target = fmt::format("{}{}watch=true&allowWatchBookmarks=true&timeoutSeconds={}", path,
                                         path.find('?') == std::string::npos ? '?' : '&', at_most.count());
  SERIN_TRY(const net::Outgoing outgoing, state_->request("GET", target, nullptr, ""));
  std::string line;  // the beginning of an event whose end has not arrived
  int status = 200;
  const auto received =
      state_->session.receive(state_->cluster.server, outgoing, at_most + state_->cluster.timeout, [&](int given, std::string_view bytes) {
        status = given;
        if (line.size() > kLargestEvent) line.clear();  // cannot be: objects are smaller
        line += bytes;
        if (given != 200) return;
        size_t from = 0;
        for (size_t end = 0; (end = line.find('\n', from)) != std::string::npos; from = end + 1)
          event(std::string_view(line).substr(from, end - from));
        line.erase(0, from);
      });
  if (received) {
    status = received->status;  // of an answer without a body, too
    state_->heed(*received);
  }
  if (status == 401) state_->forget_token();
  if (status != 200) return error_of("watch " + path, status, line);
  if (!received) return Error{Code::kUnavailable, fmt::format("Kubernetes API: watch {}: {}", path, received.error().message)};
  return {};
}

std::chrono::milliseconds Backoff::next(std::chrono::milliseconds asked_to_wait) {
  const auto now = std::chrono::milliseconds(std::uniform_int_distribution<int64_t>(pause_.count() / 2, pause_.count())(dice_));
  pause_ = std::min(pause_ * 2, kMost);
  return std::max(now, asked_to_wait);
}

struct ApiWatch::State {
  State(const Cluster& cluster, std::string collection, std::function<void()> call)
      : path(std::move(collection)), look_again(std::move(call)), api(cluster), thread([this] { run(); }) {}
  ~State() {
    sleeper.end();
    api.stop();
    thread.join();
  }

  void run();

  const std::string path;
  const std::function<void()> look_again;
  ApiClient api;
  router::Sleeper sleeper;
  std::thread thread;
};

void ApiWatch::State::run() {
  std::string trouble;
  Backoff backoff;
  do {
    // Without a resourceVersion the server begins with what exists, so a change while there was no watch is an event, too.
    bool any = false;
    const Status ended = api.watch(path, kWatchFor, [&](std::string_view event) {
      any = true;
      if (event.starts_with(R"({"type":"BOOKMARK")")) return;
      look_again();
    });
    look_again();
    if (any || ended) backoff.reset();
    const std::string now = ended ? "" : ended.error().message;
    if (std::exchange(trouble, now) != now && !now.empty()) log::warning("{}; watches again", now);
  } while (sleeper.pause(backoff.next(api.asked_to_wait())));  // a server that is overloaded, or starts, is asked ever less
}

ApiWatch::ApiWatch(const Cluster& cluster, std::string path, std::function<void()> look_again)
    : state_(std::make_unique<State>(cluster, std::move(path), std::move(look_again))) {}
ApiWatch::~ApiWatch() = default;

}  // namespace serin::kubernetes
