// client_connection.cc: a read is always pending, also while idle: that is how a kept connection notices that the server closed it, and then
// the first read of the next answer is already under way. A write that fails is therefore no news of its own: either the answer is there to be
// read (413 in the middle of an upload) or the read fails, too.

#include "runtime/net/client_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>

#include "runtime/net/message_writer.h"

namespace serin::net {
namespace {

using boost::system::error_code;
namespace asio = boost::asio;
using Clock = Deadline::Clock;

constexpr size_t kReadBytes = 4 * 1024;
constexpr size_t kKeptBytes = 16 * 1024;
constexpr int kInterimAnswers = 8;  // 1xx; more is a flood
constexpr size_t kChunks = size_t{1} << 20;
constexpr Limits kDefaults;

}  // namespace

ClientConnection::ClientConnection(asio::io_context& io, Owner& owner, const ClientOptions& options, Origin origin)
    : owner_(owner),
      options_(options),
      origin_(std::move(origin)),
      resolver_(io),
      socket_(io),
      deadline_(io),
      parser_(HeadParser::Kind::kResponse, {kDefaults.request_line_bytes, kDefaults.header_bytes, kDefaults.header_count}),
      reader_({.bytes = options.response_bytes, .chunks = kChunks}) {}

// ---- connecting ----

void ClientConnection::connect(std::shared_ptr<Call::State> call) {
  call_ = std::move(call);
  deadline_.set(std::min(call_->deadline, Clock::now() + options_.connect_timeout), shared_from_this());
  error_code not_numeric;
  const auto address = asio::ip::make_address(origin_.host, not_numeric);
  if (!not_numeric) {
    endpoints_.emplace_back(address, origin_.port);
    return try_next_endpoint("no address");
  }
  // Names only: Asio asks getaddrinfo() on a thread of its own.
  resolver_.async_resolve(origin_.host, std::to_string(origin_.port),
                          [self = shared_from_this()](const error_code& failure, const asio::ip::tcp::resolver::results_type& results) {
                            if (self->state_ != State::kConnecting) return;
                            for (const auto& result : results) self->endpoints_.push_back(result.endpoint());
                            self->try_next_endpoint(failure ? failure.message() : "no address");
                          });
}

void ClientConnection::try_next_endpoint(const std::string& why_not_the_last) {
  if (next_endpoint_ == endpoints_.size()) return fail(Code::kUnavailable, "cannot connect: " + why_not_the_last);
  const auto& endpoint = endpoints_[next_endpoint_++];
  deadline_.set(std::min(call_->deadline, Clock::now() + options_.connect_timeout), shared_from_this());
  error_code ignored;
  socket_.close(ignored);
  socket_.async_connect(endpoint, [self = shared_from_this(), attempt = next_endpoint_](const error_code& failure) {
    if (self->state_ != State::kConnecting || attempt != self->next_endpoint_) return;
    if (failure) return self->try_next_endpoint(failure.message());
    error_code none;
    self->socket_.non_blocking(true, none);
    self->socket_.set_option(asio::ip::tcp::no_delay(true), none);
    self->state_ = State::kIdle;
    self->send(std::move(self->call_));
  });
}

// ---- one request ----

void ClientConnection::send(std::shared_ptr<Call::State> call) {
  call_ = std::move(call);
  state_ = State::kHead;
  answer_begun_ = write_done_ = false;
  interim_answers_ = 0;
  response_ = Response();
  parser_.reset();
  deadline_.set(call_->deadline, shared_from_this());
  out_.clear();
  written_ = 0;
  write_request_head(origin_, call_->request, out_);
  write();
  read();
}

void ClientConnection::write() {
  const std::string_view body = call_->request.body ? std::string_view(*call_->request.body) : std::string_view();
  const size_t head = out_.size(), total = head + body.size();
  while (written_ < total) {
    const size_t body_from = written_ > head ? written_ - head : 0;
    const std::array<asio::const_buffer, 2> rest{asio::buffer(out_) + written_, asio::buffer(body) + body_from};
    error_code failure;
    written_ += socket_.write_some(rest, failure);
    if (failure == asio::error::would_block) {
      socket_.async_wait(asio::socket_base::wait_write, [self = shared_from_this(), call = call_](const error_code& wait_failure) {
        if (self->call_ != call || wait_failure) return;  // answered before all was sent, or closed
        self->write();
      });
      return;
    }
    if (failure) return;
  }
  write_done_ = true;
}

void ClientConnection::read() {
  if (reading_ || state_ == State::kClosed) return;
  reading_ = true;
  std::span<char> room = state_ == State::kBody ? reader_.window(response_.body) : std::span<char>();
  reading_window_ = !room.empty();
  if (!reading_window_) room = buffer_.room(kReadBytes);
  socket_.async_read_some(asio::buffer(room.data(), room.size()),
                          [self = shared_from_this()](const error_code& failure, size_t bytes) { self->on_read(failure, bytes); });
}

void ClientConnection::on_read(const error_code& failure, size_t bytes) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (failure) return end_of_stream(failure);
  if (state_ == State::kIdle) return abandon();  // an answer to nothing
  answer_begun_ = true;
  if (reading_window_) {
    if (reader_.filled(bytes) == BodyReader::Step::kDone) return finish();
    return read();
  }
  buffer_.filled(bytes);
  parse();
}

void ClientConnection::parse() {
  while (state_ == State::kHead)
    if (!parse_head()) return;
  if (state_ != State::kBody) return;
  size_t consumed = 0;
  const BodyReader::Step step = reader_.feed(buffer_.data(), consumed, response_.body);
  buffer_.consume(consumed);
  if (step == BodyReader::Step::kRefused) return refuse(reader_.refusal());
  if (step == BodyReader::Step::kDone) return finish();
  read();
}

/// False: more bytes are needed, or the call has ended.
bool ClientConnection::parse_head() {
  switch (parser_.feed(buffer_.data())) {
    case HeadParser::Step::kMore: read(); return false;
    case HeadParser::Step::kRefused: refuse(parser_.refusal()); return false;
    case HeadParser::Step::kDone: break;
  }
  buffer_.consume(parser_.size());
  Head& head = parser_.head();
  if (head.status < 200) {
    if (head.status == 101 || ++interim_answers_ > kInterimAnswers) {
      fail(Code::kCorrupt, "not a valid HTTP answer: too many or unexpected 1xx answers");
      return false;
    }
    parser_.reset();
    return true;
  }
  response_.status = head.status;
  response_.headers = std::move(head.headers);
  response_.close = !head.keep_alive;
  keep_alive_ = head.keep_alive;
  const Framing framing = call_->request.method == "HEAD" ? Framing::kNone : head.framing;
  state_ = State::kBody;
  switch (reader_.begin(framing, head.content_length)) {
    case BodyReader::Step::kRefused: refuse(reader_.refusal()); return false;
    case BodyReader::Step::kDone: finish(); return false;
    case BodyReader::Step::kMore: return true;
  }
  return true;
}

void ClientConnection::finish() {
  // Bytes behind the answer, or an answer to half a request: nobody knows what would come next on this connection.
  const bool kept = keep_alive_ && write_done_ && buffer_.size() == 0 && !reader_.ends_at_close();
  auto call = std::move(call_);
  if (kept) {
    state_ = State::kIdle;
    reused_ = true;
    if (!reading_) buffer_.shrink(kKeptBytes);
    deadline_.set(Clock::now() + options_.idle_timeout, shared_from_this());
    read();
  } else {
    close();
  }
  owner_.answered(shared_from_this(), std::move(call), std::move(response_), kept);
}

// ---- ends ----

void ClientConnection::end_of_stream(const error_code& failure) {
  if (state_ == State::kIdle) return abandon();
  if (state_ == State::kBody && failure == asio::error::eof && reader_.ends_at_close()) return finish();
  if (reused_ && !answer_begun_ && !call_->retried) {
    auto call = std::move(call_);
    close();
    return owner_.stale(shared_from_this(), std::move(call));
  }
  const std::string what = failure == asio::error::eof ? "the connection was closed" : failure.message();
  fail(Code::kUnavailable, what + (answer_begun_ ? " in the middle of the answer" : " before an answer"));
}

void ClientConnection::refuse(const Refusal& refusal) {
  if (refusal.status == 413) return fail(Code::kTooLarge, "the answer is too large: " + refusal.message);
  fail(Code::kCorrupt, "not a valid HTTP answer: " + refusal.message);
}

void ClientConnection::on_deadline() {
  if (state_ == State::kClosed) return;
  if (state_ == State::kIdle) return abandon();
  if (Clock::now() >= call_->deadline) return fail(Code::kDeadlineExceeded, "no complete answer in time");
  if (endpoints_.empty()) return fail(Code::kUnavailable, "cannot connect: the name was not resolved in time");
  try_next_endpoint("connecting took too long");
}

void ClientConnection::fail(Code code, const std::string& what) {
  auto call = std::move(call_);
  close();
  owner_.answered(shared_from_this(), std::move(call), Error{code, authority(origin_) + ": " + what}, false);
}

void ClientConnection::abandon() {
  if (state_ == State::kClosed) return;
  close();
  owner_.lost(shared_from_this());
}

void ClientConnection::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  deadline_.stop();
  resolver_.cancel();
  error_code ignored;
  socket_.close(ignored);
  if (call_) call_->callback = nullptr;  // now: an operation that ends later still holds the call, and the callback whatever it refers to
  call_.reset();
}

}  // namespace serin::net
