// session.cc: a call is one coroutine on the loop of its connection. The time that each step may take is a deadline of the stream (Beast), which closes the
// socket when it passes. Only getaddrinfo() cannot be stopped: a call that no longer waits for it leaves the connection to a thread that does.

#include "runtime/net/session.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <thread>

#include "runtime/net/client/client_errors.h"
#include "runtime/net/message/message_writer.h"
#include "runtime/net/tls/tls_certificates.h"
#include "runtime/net/tls/tls_stream.h"

namespace serin::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using Failed = boost::system::error_code;

constexpr auto kReported = asio::as_tuple(asio::use_awaitable);  // errors come as values
constexpr size_t kRoom = 16 * 1024;                              // for bytes of a body
constexpr Limits kDefaults;

Error cannot_connect(Code code, std::string_view why) { return {code, fmt::format("cannot connect: {}", why)}; }
Error too_late() { return {Code::kDeadlineExceeded, std::string(kTooLate)}; }
Error stopped() { return {Code::kCancelled, "the client is shutting down"}; }

std::string describe(const Failed& failed) {
  if (failed == asio::ssl::error::stream_truncated) return "the connection was cut off";
  if (failed.category() == asio::error::get_ssl_category()) return describe_tls_failure(static_cast<unsigned long>(failed.value()));
  return failed == asio::error::eof ? "the connection was closed" : failed.message();
}

/// `begun`: a byte of the answer has come.
Error broken(const Failed& failed, bool begun) {
  if (failed == beast::error::timeout) return too_late();
  if (failed == http::error::body_limit) return {Code::kTooLarge, "the answer is too large"};
  const bool ended = failed == http::error::end_of_stream || failed == http::error::partial_message;
  if (!ended && failed.category() == make_error_code(http::error::end_of_stream).category())
    return {Code::kCorrupt, fmt::format("not a valid HTTP answer: {}", failed.message())};
  return {Code::kIo, fmt::format("{} {}", ended ? "the connection was closed" : describe(failed),
                                 begun ? "in the middle of the answer" : "before an answer")};
}

}  // namespace

/// Used by one thread at a time.
struct Session::Connection {
  explicit Connection(Origin to) : origin(std::move(to)) {}

  /// Nothing has come since the last answer. A server that closes, or says what nobody asked for, is not asked again.
  bool is_quiet() {
    char byte;
    const ssize_t bytes = ::recv(plain.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return bytes < 0 ? errno == EAGAIN : bytes > 0 && secure;  // TLS: a ticket for a session
  }

  asio::io_context loop{1};
  const Origin origin;
  tcp::resolver resolver{loop};
  beast::tcp_stream plain{loop};
  std::optional<asio::ssl::stream<beast::tcp_stream&>> secure;  // over `plain`
  beast::flat_buffer received;
  std::array<char, kRoom> room;
  std::vector<tcp::endpoint> addresses;
  Clock::time_point kept_since;
  bool reused = false;
};

struct Session::Exchange {
  const ClientOptions& options;
  const Origin& origin;
  const Outgoing& request;
  const Clock::time_point deadline;
  Response response;  // without its body
  const Use& use;     // gets that
  Connection* connection = nullptr;
  Status result = stopped();  // unless something else is known
  bool resolving = false;     // getaddrinfo() is still at work
  bool reused = false;        // the connection was kept after an earlier request
  bool begun = false;         // a byte of the answer has come
  bool kept = false;          // the connection can carry another request

  Clock::time_point soon() const { return std::min(deadline, Clock::now() + options.connect_timeout); }
  /// Until when the next bytes of the answer have to come.
  Clock::time_point next_bytes() const {
    return options.silence_timeout.count() == 0 ? deadline : std::min(deadline, Clock::now() + options.silence_timeout);
  }
  bool resolve();
  asio::awaitable<void> converse();
  asio::awaitable<Status> connect();
  asio::awaitable<Status> secure();
  template <class Stream>
  asio::awaitable<Status> request_and_answer(Stream& stream);
};

/// False: there is no address, or none yet.
bool Session::Exchange::resolve() {
  Failed failed;
  if (const auto address = asio::ip::make_address(origin.host, failed); !failed) {
    connection->addresses.emplace_back(address, origin.port);
    return true;
  }
  result = cannot_connect(Code::kUnavailable, "the name was not resolved in time");
  resolving = true;
  connection->resolver.async_resolve(origin.host, std::to_string(origin.port),
                                     [this](const Failed& unknown, const tcp::resolver::results_type& all) {
                                       resolving = false;
                                       for (const auto& each : all) connection->addresses.push_back(each.endpoint());
                                       result = cannot_connect(Code::kUnavailable, unknown ? unknown.message() : "no address");
                                     });
  connection->loop.run_until(soon());
  return !connection->addresses.empty();
}

asio::awaitable<void> Session::Exchange::converse() {
  Status connected;
  if (!connection->plain.socket().is_open()) connected = co_await connect();
  if (!connected) {
    result = connected;
  } else if (connection->secure) {
    result = co_await request_and_answer(*connection->secure);
  } else {
    result = co_await request_and_answer(connection->plain);
  }
}

/// To one address after the other.
asio::awaitable<Status> Session::Exchange::connect() {
  beast::tcp_stream& stream = connection->plain;
  Failed failed;
  for (const tcp::endpoint& address : connection->addresses) {
    stream.expires_at(soon());
    failed = std::get<0>(co_await stream.async_connect(address, kReported));
    if (!failed) break;
    stream.close();
    if (failed.category() == boost::system::system_category() && is_lack_of_ours(failed.value()))
      co_return cannot_connect(Code::kOverloaded, failed.message());
  }
  if (failed == beast::error::timeout) {
    if (Clock::now() >= deadline) co_return too_late();
    co_return cannot_connect(Code::kUnavailable, "connecting took too long");
  }
  if (failed) co_return cannot_connect(Code::kUnavailable, failed.message());
  stream.socket().set_option(tcp::no_delay(true), failed);
  if (!origin.secure) co_return Status();
  co_return co_await secure();
}

asio::awaitable<Status> Session::Exchange::secure() {
  if (!options.tls) co_return cannot_connect(Code::kInternal, "no certificate authority to trust is configured");
  auto [ssl, expected] = options.tls->prepare(options.server_name.empty() ? origin.host : options.server_name, /*http2=*/false);
  if (!ssl) co_return cannot_connect(Code::kOverloaded, "TLS: no memory");
  std::string untrusted;
  const bool verified = SSL_get_verify_mode(ssl.get()) != SSL_VERIFY_NONE;
  auto& stream = connection->secure.emplace(connection->plain, ssl.release());
  if (verified) {
    stream.set_verify_callback([&, expected = expected](bool good, asio::ssl::verify_context& chain) {
      if (!good && untrusted.empty()) untrusted = describe_certificate_error(*chain.native_handle(), expected.host, expected.authorities);
      return good;
    });
  }
  connection->plain.expires_at(soon());
  const auto [failed] = co_await stream.async_handshake(asio::ssl::stream_base::client, kReported);
  if (!failed) co_return Status();
  if (failed != beast::error::timeout) co_return cannot_connect(Code::kUnavailable, untrusted.empty() ? describe(failed) : untrusted);
  if (Clock::now() >= deadline) co_return too_late();
  co_return cannot_connect(Code::kUnavailable, "TLS: the handshake took too long");
}

template <class Stream>
asio::awaitable<Status> Session::Exchange::request_and_answer(Stream& stream) {
  const std::string_view body = request.body ? std::string_view(*request.body) : std::string_view();
  std::string head;
  write_request_head(host_field(origin),
                     {.method = request.method, .target = request.target, .headers = request.headers, .length = body.size()}, head);
  connection->plain.expires_at(deadline);
  const std::array<asio::const_buffer, 2> parts{asio::buffer(head), asio::buffer(body)};
  // A write that fails is no news of its own: either the answer is there to be read (413 in the middle of an upload) or the read fails, too.
  const Failed unsent = std::get<0>(co_await asio::async_write(stream, parts, kReported));
  if (unsent == beast::error::timeout) co_return too_late();
  for (int interim = 0;; ++interim) {
    http::response_parser<http::buffer_body> parser;
    parser.header_limit(kDefaults.header_bytes);
    parser.body_limit(options.response_bytes);
    if (request.method == "HEAD") parser.skip(true);
    connection->plain.expires_at(next_bytes());
    const Failed headless = std::get<0>(co_await http::async_read_header(stream, connection->received, parser, kReported));
    begun = begun || parser.got_some();
    if (headless) co_return broken(headless, begun);
    response.status = static_cast<int>(parser.get().result_int());
    if (response.status < 200) {
      if (response.status != 101 && interim < kInterimAnswers) continue;
      co_return Error{Code::kCorrupt, std::string(kBadInterim)};
    }
    if (parser.get().find(http::field::transfer_encoding) != parser.get().end() && !parser.chunked())
      co_return Error{Code::kCorrupt, "not a valid HTTP answer: a transfer coding other than chunked"};
    for (const auto& field : parser.get()) {
      if (const std::string_view name = field.name_string(); !is_hop_by_hop(name)) response.headers.add(name, field.value());
    }
    while (!parser.is_done()) {
      auto& part = parser.get().body();
      part.data = connection->room.data();
      part.size = connection->room.size();
      connection->plain.expires_at(next_bytes());
      const Failed failed = std::get<0>(co_await http::async_read_some(stream, connection->received, parser, kReported));
      if (failed && failed != http::error::need_buffer) co_return broken(failed, begun);
      if (const size_t bytes = connection->room.size() - part.size; bytes > 0) use(response.status, {connection->room.data(), bytes});
    }
    const bool more = connection->received.size() > 0 || (connection->secure && SSL_pending(connection->secure->native_handle()) > 0);
    kept = !unsent && parser.keep_alive() && !more;
    co_return Status();
  }
}

Session::Session(ClientOptions options) : options_(std::move(options)) {}
Session::~Session() = default;

std::unique_ptr<Session::Connection> Session::take(const Origin& origin) {
  const MutexLock lock(mutex_);
  for (size_t i = kept_.size(); i-- > 0;) {  // the newest first
    if (kept_[i]->origin != origin) continue;
    auto known = std::move(kept_[i]);
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
    if (Clock::now() - known->kept_since < options_.idle_timeout && known->is_quiet()) return known;
  }
  return nullptr;
}

void Session::keep(std::unique_ptr<Connection> connection) {
  connection->reused = true;
  connection->kept_since = Clock::now();
  const MutexLock lock(mutex_);
  if (options_.kept_per_origin == 0) return;
  if (kept_.size() == options_.kept_per_origin) kept_.erase(kept_.begin());
  kept_.push_back(std::move(connection));
}

Status Session::run_once(Exchange& exchange, bool fresh) {
  auto connection = fresh ? nullptr : take(exchange.origin);
  if (!connection) connection = std::make_unique<Connection>(exchange.origin);
  struct Active {  // for as long as stop() may end it, whatever is thrown
    Session& session;
    Connection* connection;
    ~Active() { end(); }
    void end() {
      const MutexLock lock(session.mutex_);
      session.active_.erase(std::exchange(connection, nullptr));
    }
  } active{*this, connection.get()};
  {
    const MutexLock lock(mutex_);
    if (stopped_) return stopped();
    active_.insert(connection.get());
  }
  exchange.connection = connection.get();
  exchange.reused = connection->reused;
  if (exchange.reused || exchange.resolve()) {
    if (const MutexLock held(mutex_); !stopped_) connection->loop.restart();  // it has run before: for the name, or the last call
    asio::co_spawn(connection->loop, exchange.converse(), [](const std::exception_ptr& thrown) {
      if (thrown) std::rethrow_exception(thrown);
    });
    connection->loop.run();
  }
  active.end();  // before another thread can take the connection
  if (const MutexLock lock(mutex_); stopped_ && !exchange.result) exchange.result = stopped();
  if (exchange.kept) {
    keep(std::move(connection));
  } else if (exchange.resolving) {
    std::thread([waits = std::move(connection)] {}).detach();  // its end waits for getaddrinfo(); without a thread, here
  }
  return exchange.result;
}

Status Session::run(Exchange& exchange) {
  if (!valid_request_line(exchange.request.method, exchange.request.target))
    return Error{Code::kInvalidArgument, std::string(kBadRequestLine)};
  try {
    Status done = run_once(exchange, /*fresh=*/false);
    const bool stale = !done && done.error().code == Code::kIo && exchange.reused && !exchange.begun;
    if (stale) done = run_once(exchange, /*fresh=*/true);
    if (!done) return Error{done.error().code, fmt::format("{}: {}", authority(exchange.origin), done.error().message)};
    return done;
  } catch (const std::exception& lack) {  // of descriptors for a loop, of threads for getaddrinfo(), of memory
    return Error{Code::kOverloaded, fmt::format("{}: {}", authority(exchange.origin), lack.what())};
  }
}

Result<Response> Session::send(const Origin& origin, const Outgoing& request, std::chrono::nanoseconds timeout) {
  std::string body;
  const Use collect = [&body](int, std::string_view bytes) { body.append(bytes); };
  Exchange exchange{options_, origin, request, Clock::now() + std::min(timeout, kLongestCall), {}, collect};
  SERIN_CHECK(run(exchange));
  exchange.response.body = std::move(body);
  return std::move(exchange.response);
}

Result<Response> Session::receive(const Origin& origin, const Outgoing& request, std::chrono::nanoseconds timeout, const Use& use) {
  Exchange exchange{options_, origin, request, Clock::now() + std::min(timeout, kLongestCall), {}, use};
  SERIN_CHECK(run(exchange));
  return std::move(exchange.response);
}

size_t Session::open_connections() const {
  const MutexLock lock(mutex_);
  return kept_.size() + active_.size();
}

void Session::stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  for (Connection* connection : active_) connection->loop.stop();
}

Result<Response> fetch(const Origin& origin, const Outgoing& request, std::chrono::nanoseconds timeout,
                       std::shared_ptr<const TlsContext> tls) {
  Session session({.connect_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(timeout), .tls = std::move(tls)});
  return session.send(origin, request, timeout);
}

}  // namespace serin::net
