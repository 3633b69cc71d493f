// etcd_client.cc: sends a request to one endpoint after the other. A token lives five minutes at the server; an unknown token is replaced
// and the request repeated. A watch reads no events: every line that arrives means "read again", so that a compacted revision, a broken
// connection and an event are the same.

#include "router/store/etcd_client.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <atomic>
#include <future>
#include <mutex>
#include <optional>

#include "runtime/net/loop.h"
#include "runtime/net/upstream.h"

namespace serin::store {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

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

net::Outgoing post(std::string_view path, std::string body, const std::string& token) {
  net::Outgoing request{.method = "POST", .target = std::string(path), .body = std::make_shared<const std::string>(std::move(body))};
  request.headers.set("Content-Type", "application/json");
  if (!token.empty()) request.headers.set("Authorization", token);
  return request;
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

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

/// One watch at a time, begun again for as long as it lives. On the io thread.
class EtcdWatch final : public net::AnswerHandler {
 public:
  EtcdWatch(EtcdClient::State& client, const std::string& prefix, std::function<void()> look_again);
  ~EtcdWatch() = default;
  void begin();

  void on_answer(net::Head& head) override { ok_ = head.status == 200; }
  std::span<char> body_room(std::optional<uint64_t>) override { return room_; }
  void body_filled(size_t bytes) override {
    line_ended_ = line_ended_ || std::string_view(room_.data(), bytes).find('\n') != std::string_view::npos;
  }
  void on_progress(bool end) override {
    if (ok_ && std::exchange(line_ended_, false)) look_again_();
    if (end) begin_later();
  }
  void on_writable() override { write(); }
  void on_failure(const net::Failure&) override { begin_later(); }

 private:
  void write();
  void begin_later() {
    stream_ = nullptr;
    again_ = loop_.after(kWatchAgain, [this] { begin(); });
  }

  EtcdClient::State& client_;
  net::Loop& loop_;
  const std::string body_;
  const std::function<void()> look_again_;
  std::optional<net::Upstream> upstream_;
  net::ClientStream* stream_ = nullptr;
  size_t written_ = 0;
  std::array<char, 4096> room_{};
  bool ok_ = false, line_ended_ = false;
  net::Timer again_;
};

struct EtcdClient::State : std::enable_shared_from_this<EtcdClient::State> {
  explicit State(EtcdOptions given) : options(std::move(given)) {}

  Result<json::object> ask(size_t endpoint, std::string_view path, const std::string& body, bool authenticated);
  Result<net::Response> send(size_t endpoint, net::Outgoing request);
  Status authenticate(size_t endpoint);
  std::string held_token() {
    const std::lock_guard lock(mutex);
    return token;
  }

  const EtcdOptions options;
  std::atomic<size_t> current{0};
  std::mutex mutex;
  std::string token;  // guarded by mutex
  // The io thread's own; it ends before them.
  std::unique_ptr<net::Client> client;
  std::unique_ptr<EtcdWatch> watch;
  net::Loops loops{1};
};

EtcdWatch::EtcdWatch(EtcdClient::State& client, const std::string& prefix, std::function<void()> look_again)
    : client_(client),
      loop_(client.loops.loop(0)),
      body_(json::serialize(
          json::object{{"create_request", json::object{{"key", base64(prefix)}, {"range_end", base64(after_prefix(prefix))}}}})),
      look_again_(std::move(look_again)) {}

void EtcdWatch::begin() {
  ok_ = line_ended_ = false;
  written_ = 0;
  upstream_.emplace(loop_, client_.options.endpoints[client_.current.load() % client_.options.endpoints.size()],
                    net::ClientOptions{.connect_timeout = client_.options.timeout, .tls = client_.options.tls});
  stream_ = &upstream_->open(*this, std::chrono::steady_clock::now() + kWatchFor);
  net::Headers headers;
  headers.set("Content-Type", "application/json");
  headers.set("Grpc-Metadata-hasleader", "true");  // ends where the member loses its leader
  if (const std::string token = client_.held_token(); !token.empty()) headers.set("Authorization", token);
  stream_->begin_request({.method = "POST", .target = "/v3/watch", .headers = headers, .length = body_.size()});
  write();
}

void EtcdWatch::write() {
  if (stream_ != nullptr) written_ += stream_->write(std::string_view(body_).substr(written_), /*last=*/true);
}

Result<net::Response> EtcdClient::State::send(size_t endpoint, net::Outgoing request) {
  std::promise<Result<net::Response>> promise;
  loops.post(0, [&] {
    client->send(options.endpoints[endpoint], std::move(request), options.timeout,
                 [&promise](Result<net::Response> response) { promise.set_value(std::move(response)); });
  });
  return promise.get_future().get();
}

Status EtcdClient::State::authenticate(size_t endpoint) {
  const json::object who{{"name", options.user}, {"password", options.password}};
  SERIN_TRY(const json::object answer, ask(endpoint, "/v3/auth/authenticate", json::serialize(who), /*authenticated=*/false));
  const json::value* given = answer.if_contains("token");
  if (given == nullptr || !given->is_string()) return Error{Code::kCorrupt, "etcd: authenticated without a token"};
  const std::lock_guard lock(mutex);
  token = given->as_string().c_str();
  return {};
}

Result<json::object> EtcdClient::State::ask(size_t endpoint, std::string_view path, const std::string& body, bool authenticated) {
  for (bool again = false;; again = true) {
    const std::string shown = authenticated ? held_token() : "";
    SERIN_TRY(const net::Response response, send(endpoint, post(path, body, shown)));
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

EtcdClient::EtcdClient(EtcdOptions options) : state_(std::make_shared<State>(std::move(options))) {
  state_->loops.post_and_wait(0, [this] {
    state_->client = std::make_unique<net::Client>(
        state_->loops.loop(0),
        net::ClientOptions{.connect_timeout = state_->options.timeout, .response_bytes = kLargestAnswer, .tls = state_->options.tls});
  });
}

EtcdClient::~EtcdClient() {
  state_->loops.post_and_wait(0, [this] {
    state_->watch.reset();
    state_->client.reset();
  });
}

Result<json::object> EtcdClient::call(std::string_view path, const json::object& body) {
  const std::string text = json::serialize(body);
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
  state_->loops.post_and_wait(0, [&] {
    state_->watch.reset();
    if (!look_again) return;
    state_->watch = std::make_unique<EtcdWatch>(*state_, prefix, std::move(look_again));
    state_->watch->begin();
  });
}

}  // namespace serin::store
