// etcd_client.cc: sends a request to one endpoint after the other. A token lives five minutes at the server; an unknown token is replaced
// and the request repeated. A watch reads no events: every line that arrives means "read again", so that a compacted revision, a broken
// connection and an event are the same.

#include "router/store/etcd_client.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <atomic>
#include <thread>

#include "kernels/mutex.h"
#include "runtime/base/base64.h"
#include "runtime/base/sleeper.h"
#include "runtime/net/session.h"

namespace serin::store {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;
using Body = std::shared_ptr<const std::string>;

constexpr milliseconds kWatchAgain{100};
constexpr std::chrono::hours kWatchFor{1};
constexpr size_t kLargestAnswer = size_t{64} << 20, kLongestReason = 200;

// Codes of gRPC that mean something here (https://grpc.github.io/grpc/core/md_doc_statuscodes.html).
constexpr int64_t kGrpcDeadline = 4, kGrpcNotFound = 5, kGrpcDenied = 7, kGrpcUnavailable = 14, kGrpcUnauthenticated = 16;

/// What an answer other than 200 says. "user name is empty" comes as an invalid argument.
Error error_of(const net::Response& response, bool& unauthenticated) {
  boost::system::error_code failure;
  const json::value body = json::parse(response.body, failure);
  std::string text = fmt::format("HTTP status {}", response.status);
  int64_t grpc = 0;
  if (failure && !response.body.empty()) text += ": " + response.body.substr(0, kLongestReason);
  if (!failure && body.is_object()) {
    if (const json::value* message = body.as_object().if_contains("error"); message != nullptr && message->is_string())
      text = message->as_string().c_str();
    if (const json::value* code = body.as_object().if_contains("code"); code != nullptr && code->is_int64()) grpc = code->as_int64();
  }
  unauthenticated = grpc == kGrpcUnauthenticated || text.find("user name is empty") != std::string::npos;
  const bool elsewhere = grpc == kGrpcUnavailable || grpc == kGrpcDeadline || response.status >= 502;
  return {unauthenticated || grpc == kGrpcDenied ? Code::kPermissionDenied
          : grpc == kGrpcNotFound                ? Code::kNotFound
          : elsewhere                            ? Code::kUnavailable
                                                 : Code::kFailedPrecondition,
          "etcd: " + text};
}

bool may_work_elsewhere(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kIo || code == Code::kCorrupt;
}

Body text_of(const json::object& object) { return std::make_shared<const std::string>(json::serialize(object)); }

net::Outgoing post(std::string_view path, Body body, const std::string& token) {
  net::Outgoing request{.method = "POST", .target = std::string(path), .body = std::move(body)};
  request.headers.set("Content-Type", "application/json");
  if (!token.empty()) request.headers.set("Authorization", token);
  return request;
}

}  // namespace

std::string from_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3 + 1, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()), reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) return {};
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;  // decoded as zeros
  bytes.resize(static_cast<size_t>(size) - padding);
  return bytes;
}

int64_t int64_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return 0;
  if (value->is_int64()) return value->as_int64();
  return value->is_string() ? std::strtoll(value->as_string().c_str(), nullptr, 10) : 0;
}

std::string after_prefix(std::string prefix) {
  ++prefix.back();
  return prefix;
}

/// One watch at a time, begun again for as long as it lives. It has a thread.
class EtcdWatch {
 public:
  EtcdWatch(EtcdClient::State& client, const std::string& prefix, std::function<void()> look_again);
  ~EtcdWatch();

 private:
  void run();

  EtcdClient::State& client_;
  const Body body_;
  const std::function<void()> look_again_;
  net::Session session_;
  router::Sleeper sleeper_;
  std::thread thread_;
};

struct EtcdClient::State {
  explicit State(EtcdOptions given)
      : options(std::move(given)), session({.connect_timeout = options.timeout, .response_bytes = kLargestAnswer, .tls = options.tls}) {}

  Result<json::object> ask(size_t endpoint, std::string_view path, const Body& body, bool authenticated);
  Status authenticate(size_t endpoint);
  std::string held_token() {
    const MutexLock lock(mutex);
    return token;
  }

  const EtcdOptions options;
  std::atomic<size_t> current{0};
  Mutex mutex;
  std::string token SERIN_GUARDED_BY(mutex);
  net::Session session;
  std::unique_ptr<EtcdWatch> watch SERIN_GUARDED_BY(mutex);
};

EtcdWatch::EtcdWatch(EtcdClient::State& client, const std::string& prefix, std::function<void()> look_again)
    : client_(client),
      body_(
          text_of({{"create_request", json::object{{"key", encode_base64(prefix)}, {"range_end", encode_base64(after_prefix(prefix))}}}})),
      look_again_(std::move(look_again)),
      session_({.connect_timeout = client.options.timeout, .tls = client.options.tls}),
      thread_([this] { run(); }) {}

EtcdWatch::~EtcdWatch() {
  sleeper_.end();
  session_.stop();
  thread_.join();
}

void EtcdWatch::run() {
  const std::vector<net::Origin>& endpoints = client_.options.endpoints;
  do {
    net::Outgoing request = post("/v3/watch", body_, client_.held_token());
    request.headers.set("Grpc-Metadata-hasleader", "true");  // ends where the member loses its leader
    (void)session_.receive(endpoints[client_.current.load() % endpoints.size()], request, kWatchFor,
                           [this](int status, std::string_view bytes) {
                             if (status == 200 && bytes.find('\n') != std::string_view::npos) look_again_();
                           });
  } while (sleeper_.pause(kWatchAgain));
}

Status EtcdClient::State::authenticate(size_t endpoint) {
  const json::object who{{"name", options.user}, {"password", options.password}};
  SERIN_TRY(const json::object answer, ask(endpoint, "/v3/auth/authenticate", text_of(who), /*authenticated=*/false));
  const json::value* given = answer.if_contains("token");
  if (given == nullptr || !given->is_string()) return Error{Code::kCorrupt, "etcd: authenticated without a token"};
  const MutexLock lock(mutex);
  token = given->as_string().c_str();
  return {};
}

Result<json::object> EtcdClient::State::ask(size_t endpoint, std::string_view path, const Body& body, bool authenticated) {
  for (bool again = false;; again = true) {
    const std::string shown = authenticated ? held_token() : "";
    SERIN_TRY(const net::Response response, session.send(options.endpoints[endpoint], post(path, body, shown), options.timeout));
    if (response.status == 200) {
      boost::system::error_code failure;
      json::value answer = json::parse(response.body, failure);
      if (failure || !answer.is_object()) return Error{Code::kCorrupt, "etcd: the answer is not a JSON object"};
      return std::move(answer.as_object());
    }
    bool unauthenticated = false;
    Error error = error_of(response, unauthenticated);
    // Where clients show certificates, who shows no token is a user without a name, and nothing is allowed to that one.
    const bool nameless = error.code == Code::kPermissionDenied && shown.empty();
    if (!(unauthenticated || nameless) || again || !authenticated || options.user.empty()) return error;
    SERIN_CHECK(authenticate(endpoint));
  }
}

EtcdClient::EtcdClient(EtcdOptions options) : state_(std::make_unique<State>(std::move(options))) {}
EtcdClient::~EtcdClient() = default;

Result<json::object> EtcdClient::call(std::string_view path, const json::object& body) {
  const Body text = text_of(body);
  const size_t count = state_->options.endpoints.size();
  std::string reasons;
  for (size_t tried = 0; tried < count; ++tried) {
    size_t endpoint = state_->current.load();
    auto answer = state_->ask(endpoint, path, text, /*authenticated=*/true);
    if (answer || !may_work_elsewhere(answer.error().code)) return answer;
    reasons += (reasons.empty() ? "" : "; ") + answer.error().message;
    state_->current.compare_exchange_strong(endpoint, (endpoint + 1) % count);
  }
  return Error{Code::kUnavailable, reasons};
}

void EtcdClient::watch(const std::string& prefix, std::function<void()> look_again) {
  auto next = look_again ? std::make_unique<EtcdWatch>(*state_, prefix, std::move(look_again)) : nullptr;
  const MutexLock lock(state_->mutex);
  next.swap(state_->watch);
}

}  // namespace serin::store
