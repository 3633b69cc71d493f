// whole_request.cc: an answer is one body, or pieces for as long as its source has some; what begins the next request ends the one before.

#include "runtime/net/server/whole_request.h"

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/net/body_source.h"
#include "runtime/net/message/served.h"

namespace serin::net {
namespace {

constexpr size_t kWorthPacking = 1024;
constexpr size_t kMostPackedOnIo = size_t{256} << 10;  // several milliseconds
constexpr size_t kMostPacked = size_t{16} << 20;       // more would take longer than sending it as it is

}  // namespace

void WholeRequest::on_request(Head& head) {
  end_exchange();
  exchange_ = handler_->exchanges[loop_.index()].take();
  exchange_->loop = &loop_;
  exchange_->request = weak_from_this();
  wants_body_ = head.method != "HEAD";
  Request& request = exchange_->asked;
  request.method.swap(head.method);
  request.target.swap(head.target);
  request.path.swap(head.path);
  request.query.swap(head.query);
  std::swap(request.headers, head.headers);
  request.peer = stream_.peer();
  request.certificate = stream_.certificate();
  request.received = loop_.now();
  request.loop = &loop_;
  body_.begin(std::move(request.body));
  dropped_ = refused_ = false;
  if (handler_->options.encoded_bodies) return;
  packed_ = parse_coding(request.headers.get("content-encoding"));
  wanted_ = preferred_coding(request.headers.get("accept-encoding"));
}

std::span<char> WholeRequest::body_room(std::optional<uint64_t> left) {
  const auto& budget = handler_->options.large_bodies;
  if (budget && !dropped_ && !share_.resize(budget, budget->with_room(body_.size(), body_.size_with_room(left) - body_.size()))) {
    dropped_ = true;
    body_.begin({});
    share_.release();
  }
  return body_.room(left);
}

void WholeRequest::on_progress(bool end) {
  if (dropped_) return refuse_dropped();
  if (!end) return;
  exchange_->asked.body = body_.take();
  exchange_->asked.share = std::move(share_);
  responder_ = exchange_;
  if (!packed_ || exchange_->asked.body.empty()) return handle();
  if (exchange_->asked.body.size() > kMostOnIo) return unpack_aside();
  const Status unpacked = unpack_body(*handler_, *packed_, exchange_->asked, kMostOnIo);
  if (!unpacked && unpacked.error().code == Code::kTooLarge) return unpack_aside();
  handle_unpacked(unpacked);
}

void WholeRequest::unpack_aside() {
  struct Work {
    std::shared_ptr<Responder::State> mine;
    std::shared_ptr<const WholeHandler> handler;
    Coding coding;
    net::Turn turn;
    Status unpacked = Error{Code::kOverloaded, "not decompressed"};  // where that throws
  };
  const auto work = std::make_shared<Work>(exchange_, handler_, *packed_);
  exchange_->asked.whole = std::chrono::steady_clock::now();
  exchange_->on_cancel = [weak = std::weak_ptr(work)] {
    const auto held = weak.lock();
    if (held && held->turn.take()) let_go_of_body(held->mine->asked);
  };
  loop_.aside(
      [work] {
        if (work->turn.take()) work->unpacked = unpack_body(*work->handler, work->coding, work->mine->asked, SIZE_MAX);
      },
      [work] {
        const auto self = work->mine->request.lock();
        if (self && self->responder_ == work->mine) self->handle_unpacked(work->unpacked);
      });
}

void WholeRequest::handle_unpacked(const Status& unpacked) {
  exchange_->on_cancel = nullptr;
  if (unpacked) return handle();
  switch (unpacked.error().code) {  // the connection stays: where the next request begins is known
    case Code::kOverloaded: return refuse(no_memory(), /*close=*/false);
    case Code::kTooLarge: return refuse({413, "content_encoding", unpacked.error().message}, /*close=*/false);
    default: return refuse({400, "content_encoding", "the body: " + unpacked.error().message}, /*close=*/false);
  }
}

void WholeRequest::handle() {
  const auto mine = responder_;  // the handler may answer at once, and the next request begin
  try {
    handler_->handle(std::move(mine->asked), Responder(mine));
    if (exchange_ == mine) let_go_of_body(mine->asked);
  } catch (const std::exception& e) {
    log::error("{}: the handler of a request threw: {}", handler_->options.name, e.what());
    answer(*mine, json_error(500, "internal error"));
  }
}

void WholeRequest::answer(const Responder::State& responder, Response response) {
  if (&responder != responder_.get()) return;
  responder_->on_cancel = nullptr;  // it may hold what holds the Responder
  responder_.reset();
  if (handler_->options.on_answer) handler_->options.on_answer(response);
  begin_answer(std::move(response));
}

void WholeRequest::begin_answer(Response response) {
  if (response.status < 200 || response.status > 599) {
    log::error("{}: an answer has status {}", handler_->options.name, response.status);
    response = json_error(500, "internal error");
  }
  if (!may_pack(response)) return send_answer(std::move(response));
  if (response.body.size() <= kMostPackedOnIo) {
    pack_answer(*wanted_, response);
    return send_answer(std::move(response));
  }
  const auto packed = std::make_shared<Response>(std::move(response));
  loop_.aside([packed, coding = *wanted_] { pack_answer(coding, *packed); },
              [packed, mine = exchange_] {
                const auto self = mine->request.lock();
                if (self && self->exchange_ == mine) self->send_answer(std::move(*packed));
              });
}

void WholeRequest::send_answer(Response response) {
  response_ = std::move(response);
  written_ = 0;
  const bool trailers = !response_.trailers.empty();
  const auto length = trailers || response_.source ? std::nullopt : std::optional<uint64_t>(response_.body.size());
  stream_.begin_answer({.status = response_.status, .headers = response_.headers, .length = length, .close = response_.close});
  if (trailers) stream_.set_trailers(response_.trailers);
  if (response_.source) begin_source();
  write();
}

void WholeRequest::refuse(const Refusal& refusal, bool close) {
  Response response = answer_to(refusal, handler_->options);
  if (refusal.status == 429) response.headers.set("retry-after", "1");
  response.close = close;
  responder_.reset();
  begin_answer(std::move(response));
}

Refusal WholeRequest::no_memory() { return {429, "body_memory", "too many large bodies are in progress; try again"}; }

void WholeRequest::refuse_dropped() {
  if (!exchange_ || std::exchange(refused_, true)) return;
  refuse(no_memory(), /*close=*/true);
}

/// In place. `most`: bytes, where the limits allow more.
Status WholeRequest::unpack_body(const WholeHandler& handler, Coding coding, Request& request, size_t most) {
  const size_t packed = request.body.size();
  const auto& budget = handler.options.large_bodies;
  const size_t allowed = budget ? std::min(handler.options.limits.body_bytes, budget->most() - packed) : handler.options.limits.body_bytes;
  auto body = unpack(coding, request.body, std::min(allowed, most), {.share = request.share, .budget = budget, .beside = packed});
  if (!body) {
    request.share.resize(budget, packed);
    if (body.error().code != Code::kTooLarge) return body.error();
    return Error{Code::kTooLarge, too_large_message("the body, once decompressed,", allowed, handler.options.body_bytes_from)};
  }
  request.body = std::move(*body);
  request.share.resize(budget, request.body.size());
  request.headers.remove("content-encoding");
  return {};
}

/// Whoever has read it keeps what came of it, and answers later.
void WholeRequest::let_go_of_body(Request& request) {
  if (request.body.empty()) return;
  clear_for_reuse(request.body);
  request.share.release();
}

/// Says so to caches, whether this client wants it or not.
bool WholeRequest::may_pack(Response& response) const {
  const size_t size = response.body.size();
  if (handler_->options.encoded_bodies || response.source || size < kWorthPacking || size > kMostPacked ||
      response.headers.has("content-encoding"))
    return false;
  response.headers.add("vary", "accept-encoding");
  return wanted_ && !response.headers.has("etag");  // a tag names the bytes as they are
}

void WholeRequest::pack_answer(Coding coding, Response& response) {
  auto packed = pack(coding, response.body);
  if (!packed) return;
  response.body = std::move(*packed);
  response.headers.add("content-encoding", coding_name(coding));
}

void WholeRequest::begin_source() {
  response_.body.clear();
  said_all_ = !wants_body_;
  if (said_all_) return;
  response_.source->begin([&loop = loop_, request = weak_from_this(), source = response_.source.get()] {
    loop.post([request, source] {
      const auto self = request.lock();
      if (self && self->response_.source.get() == source) self->write();  // else it is another answer's turn
    });
  });
}

void WholeRequest::write() {
  if (response_.source) return write_pieces();
  written_ += stream_.write(std::string_view(response_.body).substr(written_), /*last=*/true);
  if (written_ == response_.body.size()) end_exchange();
}

/// What it held goes with it: a source may hold what its client asked for.
void WholeRequest::end_exchange() {
  if (exchange_) exchange_->answer = std::move(response_);
  response_ = Response();
  written_ = 0;
  exchange_ = nullptr;
  share_.release();
}

void WholeRequest::write_pieces() {
  while (true) {
    if (written_ == response_.body.size() && !said_all_) {
      auto piece = response_.source->pull();
      said_all_ = !piece;
      response_.body = std::move(piece).value_or("");
      written_ = 0;
      if (!said_all_ && response_.body.empty()) return;
    }
    written_ += stream_.write(std::string_view(response_.body).substr(written_), said_all_);
    const bool all = written_ == response_.body.size();
    if (said_all_ && all) end_exchange();
    if (said_all_ || !all) return;
  }
}

void WholeRequest::on_gone() {
  const auto exchange = exchange_;
  end_exchange();
  const auto responder = std::exchange(responder_, nullptr);
  if (!responder) return;
  responder->cancelled.store(true);
  if (auto work = std::exchange(responder->on_cancel, nullptr)) work();
}

// ---- the way from any thread back to the connection that waits; everything there is touched on its io thread ----

Responder::~Responder() {
  if (state_ && !state_->sent) send(json_error(500, "the request was dropped"));
}

Responder& Responder::operator=(Responder&& other) noexcept {
  Responder(std::move(other)).state_.swap(state_);  // what this held before is answered by the temporary
  return *this;
}

Loop& Responder::loop() const { return *state_->loop; }

Response Responder::blank() { return state_ ? std::exchange(state_->answer, {}) : Response(); }

void Responder::send(Response response) {
  if (!state_ || state_->sent) return;
  state_->sent = true;
  if (state_->cancelled.load()) return;  // the server and its io threads may have ended
  if (state_->loop->is_here()) {
    if (const auto request = state_->request.lock()) request->answer(*state_, std::move(response));
    return;
  }
  state_->loop->post([state = state_, response = std::move(response)]() mutable {
    if (const auto request = state->request.lock()) request->answer(*state, std::move(response));
  });
}

void Responder::State::clear() {
  request.reset();
  cancelled = sent = false;
  on_cancel = nullptr;
  asked.clear();
  answer.clear();
}

bool Responder::cancelled() const { return state_->cancelled.load(); }

void Responder::on_cancel(UniqueFunction<void()> work) {
  if (state_ && !state_->sent) state_->on_cancel = std::move(work);
}

}  // namespace serin::net
