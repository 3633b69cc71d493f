// exchange.cc: place, attempt, shield, failover, hedge, deliver.

#include "router/proxy/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "router/proxy/own_answers.h"
#include "router/proxy/shadow.h"
#include "router/proxy/verdict.h"
#include "runtime/net/loop.h"

namespace serin::router {
namespace {

using rollout::Outcome;

constexpr size_t kReplayBytes = size_t{1} << 20;    // of a request's body kept so that it can be sent again
constexpr size_t kWindowBytes = size_t{256} << 10;  // of one that is larger
constexpr size_t kStartBytes = size_t{64} << 10;    // then its attempt begins, though the body is not complete
constexpr size_t kSmallAnswer =
    size_t{64} << 10;                    // goes to the client in one piece, so that one cut off is an error and not half an answer
constexpr double kFailoverShare = 0.20;  // of the requests under way, plus 3: most that go to a second endpoint
constexpr int64_t kMostMirrored = 16;    // mirrored requests under way at once, for each service: a stuck canary must not fill our memory

// Milliseconds the client gives; nothing where it does not say, a negative number where what it says is no number.
std::optional<int64_t> client_timeout_ms(const net::Headers& headers) {
  const auto text = headers.get("x-serin-timeout-ms");
  if (text.empty()) return std::nullopt;
  int64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  return ec == std::errc() && end == text.data() + text.size() && value > 0 && value <= 86'400'000 ? value : -1;
}

net::Response bad_request(std::string_view message) {
  net::Response response = net::json_error(400, message);
  response.headers.set("x-serin-code", code_name(Code::kInvalidArgument));
  return response;
}

bool is_good(Outcome outcome) { return outcome == Outcome::kOk || outcome == Outcome::kNeutral; }

}  // namespace

Exchange::Exchange(Router& router, Lane& lane, net::ServerStream& client)
    : router_(router), lane_(lane), client_(client), hedge_alarm_(this, [](void* self) { static_cast<Exchange*>(self)->hedge(); }) {}

Exchange::~Exchange() { on_gone(); }

// ---- the request ----

void Exchange::on_request(net::Head& head) {
  request_ = &head;
  const auto target = parse_target(head);
  Service* const service = target ? router_.find(*target) : nullptr;
  if (service == nullptr) {
    local_ = answer_of_ours(router_, head, target);
    return;
  }
  const Time now = net::loop_time();
  target_ = *target;
  body_ = lane_.buffers().take();
  service_ = service;
  service_->budget.request_begins();
  deadline_ = now + service_->config->request_timeout;
  length_ = head.framing == net::Framing::kChunked ? std::nullopt
                                                   : std::optional(head.framing == net::Framing::kLength ? head.content_length : 0);
  if (const auto ms = client_timeout_ms(head.headers)) {
    if (*ms < 0) {
      local_ = bad_request("header x-serin-timeout-ms must be a whole number of milliseconds, from 1 to 86400000");
      return;
    }
    deadline_ = std::min(deadline_, now + std::chrono::milliseconds(*ms));
  }
  auto placed = place_request(*service_, lane_, target_, head.headers, now);
  if (!placed) {
    local_ = bad_request(placed.error().message);
    return;
  }
  placed_ = *std::move(placed);
  rewrite_request(head, client_.peer(), scratch_);
}

std::span<char> Exchange::body_room(std::optional<uint64_t> left) {
  if (local_ || !service_) {  // nobody reads it
    body_.clear();
    return body_.room(kStartBytes);
  }
  if (body_.size() >= kReplayBytes || discarded_ > 0) {
    if (first_) {
      const auto gone = static_cast<size_t>(first_->sent - discarded_);
      body_.consume(gone);
      discarded_ += gone;
    }
    if (body_.size() >= kWindowBytes) return {};
  }
  const size_t most = (discarded_ > 0 ? kWindowBytes : kReplayBytes) - body_.size();
  const size_t wanted =
      std::min(most, std::max(kStartBytes, body_.size()));  // a promised length is believed only as far as bytes follow it
  return body_.room(left ? static_cast<size_t>(std::min<uint64_t>(*left, wanted)) : wanted);
}

void Exchange::on_progress(bool end) {
  body_done_ = end;
  if (local_) {
    if (end) send_local();
    return;
  }
  if (!service_) return;
  if (!started_) {
    if (!end && body_.size() < kStartBytes) return;
    started_ = true;
    return attempt(placed_.version, placed_.purpose);
  }
  for (Attempt* attempt : {first_, second_})
    if (attempt) send_body(*attempt);
  if (end) plan_hedge();
}

/// On `version`, or on stable where that has nobody to give; the client is told where nobody can.
void Exchange::attempt(size_t version, Purpose purpose, const EndpointState* avoid) {
  if (net::loop_time() >= deadline_) return fail(version, Code::kDeadlineExceeded, "the deadline passed before a version answered");
  if (begin(version, purpose, avoid)) return;
  const size_t stable = placed_.split.stable;
  if (version != stable && purpose != Purpose::kForced) {
    placed_.judged = false;
    return attempt(stable, Purpose::kFallback);
  }
  if (service_->versions[version]->list()->empty()) return fail(version, Code::kUnavailable, "it has no endpoint just now");
  fail(version, Code::kOverloaded, "every endpoint has as many requests under way as it may have");
}

/// False: the version has no endpoint to give.
bool Exchange::begin(size_t version, Purpose purpose, const EndpointState* avoid) {
  Attempt& attempt = lane_.take_attempt();
  if (!attempt.start(*this, *service_, version, purpose, placed_, deadline_, avoid)) {
    lane_.give_back(attempt);
    return false;
  }
  (first_ ? second_ : first_) = &attempt;
  if (tried_twice_) service_->retries->add();
  const bool drawn = purpose == Purpose::kDrawn && placed_.spec != nullptr;
  attempt.keep_body = drawn && (placed_.draw.look || attempt.on_canary() || placed_.mirror);
  send_request(attempt);
  if (body_done_) plan_hedge();
  return true;
}

void Exchange::send_request(Attempt& attempt) {
  // A chunked body that is here already goes on with its length: some servers take nothing else.
  const auto length = length_ || !body_done_ || discarded_ > 0 ? length_ : std::optional<uint64_t>(body_.size());
  attempt.send_head(*request_, target_, length);
  send_body(attempt);
}

void Exchange::send_body(Attempt& attempt) {
  if (attempt.stream() == nullptr) return;
  const std::string_view rest = body_.data().substr(static_cast<size_t>(attempt.sent - discarded_));
  attempt.sent += attempt.stream()->write(rest, body_done_);
  const uint64_t unsent = discarded_ + body_.size() - attempt.sent;
  attempt.wait_for_client(!body_done_ && unsent == 0);
  if (!body_done_ && unsent < kWindowBytes) client_.read_more();
}

// ---- what becomes of attempts ----

void Exchange::on_answer_progress(Attempt& attempt) {
  if (&attempt == delivering_) return pass_on(attempt);
  if (attempt.ended() || attempt.overdue()) return resolved(attempt);
  if (!attempt.answered()) return;
  const bool may_be_replaced = attempt.on_canary() && attempt.purpose() == Purpose::kDrawn && placed_.spec;
  const bool other = first_ && second_;
  const net::Head& head = attempt.answer();
  const bool soon_whole = head.framing == net::Framing::kLength && head.content_length <= kSmallAnswer;
  if ((may_be_replaced && attempt.body().size() < Attempt::kKeptBytes) || (other && attempt.status() >= 400) || soon_whole) return;
  deliver(attempt);
}

void Exchange::resolved(Attempt& attempt) {
  if (is_good(attempt.outcome()) && attempt.status() != 429) return deliver(attempt);
  if (first_ && second_) {  // the other may still do better
    if (attempt.ended()) drop(attempt);
    return;
  }
  if (!try_again(attempt) && attempt.ended()) deliver(attempt);
}

/// Shield and failover. A canary without capacity (429) is no evidence against its answers, but its clients need not feel it.
bool Exchange::try_again(Attempt& attempt) {
  if (tried_twice_ || !can_send_again() || net::loop_time() >= deadline_) return false;
  const bool shield = attempt.purpose() == Purpose::kDrawn && attempt.on_canary() && placed_.spec && placed_.spec->shield.retry_stable;
  if (shield) {
    if (!second_try_allowed(placed_.spec->shield.budget)) return false;
    drop(attempt);
    this->attempt(placed_.split.stable, Purpose::kShield);
    return true;
  }
  // One endpoint of several went away before the health check saw it. Once only: a request that kills whoever takes it must not go round.
  const bool gone = attempt.failure() && is_silence(attempt.failure()->code);
  if (!gone || service_->versions[attempt.version()]->list()->size() < 2 || !second_try_allowed(kFailoverShare)) return false;
  const size_t version = attempt.version();
  const auto avoid = attempt.endpoint();
  drop(attempt);
  this->attempt(version, Purpose::kFailover, avoid.get());
  return true;
}

bool Exchange::second_try_allowed(double share) {
  if (!service_->budget.take(share)) {
    service_->retries_denied->add();
    return false;
  }
  tried_twice_ = true;
  return true;
}

/// Once the canary has the whole request and does not answer as soon as stable usually does, stable is to be asked, too.
void Exchange::plan_hedge() {
  if (!first_ || second_ || first_->purpose() != Purpose::kDrawn || !first_->on_canary() || !placed_.spec->shield.retry_stable) return;
  if (const auto after = service_->controller->pace(service_->index).hedge_after; after.count() > 0)
    hedge_alarm_.set(net::this_wheel(), net::loop_time() + after);
}

/// The first good answer counts.
void Exchange::hedge() {
  if (!first_ || second_ || delivering_ || tried_twice_ || !can_send_again() || first_->overdue()) return;
  if (net::loop_time() >= deadline_ || !second_try_allowed(placed_.spec->shield.budget)) return;
  if (begin(placed_.split.stable, Purpose::kHedge, nullptr)) return service_->hedges->add();
  tried_twice_ = false;  // stable is full: the canary's answer may still be good, and if not the shield may find stable free
  service_->budget.give_back();
}

void Exchange::drop(Attempt& attempt) {
  forget(attempt);
  attempt.release();
}

void Exchange::forget(const Attempt& attempt) {
  (&attempt == first_ ? first_ : second_) = nullptr;
  if (!first_) std::swap(first_, second_);
}

// ---- the answer ----

void Exchange::deliver(Attempt& attempt) {
  delivering_ = &attempt;
  hedge_alarm_.clear();
  if (Attempt* other = &attempt == first_ ? second_ : first_) {  // one of them is a hedge: the request is here, and whole
    forget(*other);
    other->release_to_judge(body_.data().substr(static_cast<size_t>(other->sent)));
  }
  if (const net::Failure* failure = attempt.failure()) return fail(attempt.version(), failure->code, failure->what);
  net::Head& head = attempt.answer();
  rewrite_answer(head, service_->versions[attempt.version()]->version());
  std::optional<uint64_t> length;
  if (head.framing == net::Framing::kLength || request_->method == "HEAD")
    length = head.content_length;
  else if (attempt.ended())
    length = attempt.body().size();
  passed_ = 0;
  client_.begin_answer({.status = head.status, .headers = head.headers, .length = length});
  pass_on(attempt);
}

void Exchange::pass_on(Attempt& attempt) {
  if (attempt.failure()) {  // in the middle of the answer: all that is left is to let the client notice
    client_.abort();
    return end_request();
  }
  if (attempt.keep_body && attempt.body().size() >= Attempt::kKeptBytes) {  // too large to be looked at
    attempt.keep_body = placed_.mirror = false;
    attempt.body().consume(std::exchange(passed_, 0));
  }
  const std::string_view rest = attempt.body().data().substr(passed_);
  const size_t taken = client_.write(rest, attempt.ended());
  if (attempt.keep_body)
    passed_ += taken;
  else
    attempt.body().consume(taken);
  if (attempt.ended() && taken == rest.size()) return finish(attempt);
  const size_t most = attempt.keep_body ? Attempt::kKeptBytes : Attempt::kWindowBytes;
  if (attempt.stream() && attempt.body().size() < most) attempt.stream()->read_more();
}

void Exchange::on_writable() {
  if (local_) return send_local();
  if (delivering_) pass_on(*delivering_);
}

void Exchange::finish(Attempt& attempt) {
  lane_.count_answer(*service_, attempt.version(), attempt.status());
  if (placed_.mirror && attempt.keep_body && attempt.purpose() == Purpose::kDrawn) mirror(attempt);
  end_request();
}

void Exchange::mirror(Attempt& attempt) {
  if (service_->mirrored.load(std::memory_order_relaxed) >= kMostMirrored) return service_->mirrors_dropped->add();
  Endpoints& canary = *service_->versions[placed_.split.canary];
  EndpointState* endpoint = canary.choose(lane_.endpoints(canary), lane_.random(), net::loop_time());
  if (endpoint == nullptr || !can_send_again()) return service_->mirrors_dropped->add();
  lane_.take_shadow().start(*service_, placed_, attempt, *endpoint, *request_, target_, std::move(body_));
}

// ---- answers of our own ----

void Exchange::fail(size_t version, Code code, std::string_view what) {
  const std::string& name = service_->versions[version]->version();
  const bool busy = code == Code::kUnavailable || code == Code::kOverloaded;
  const int status = code == Code::kDeadlineExceeded ? 504 : busy ? 503 : 502;
  net::Response response = net::json_error(status, fmt::format("service '{}' version '{}': {}", target_.service, name, what));
  response.headers.set("x-serin-code", code_name(code));
  response.headers.set("x-serin-version", name);
  if (busy) response.headers.set("Retry-After", "1");
  lane_.count_answer(*service_, version, status);
  local_ = std::move(response);
  send_local();
}

void Exchange::send_local() {
  if (local_sent_ == 0) client_.begin_answer({.status = local_->status, .headers = local_->headers, .length = local_->body.size()});
  const std::string_view rest = std::string_view(local_->body).substr(local_sent_);
  const size_t taken = client_.write(rest, /*last=*/true);
  local_sent_ += taken;
  if (taken == rest.size()) end_request();
}

/// Also where the client is gone, which says nothing about a version.
void Exchange::end_request() {
  hedge_alarm_.clear();
  delivering_ = nullptr;
  if (auto* attempt = std::exchange(first_, nullptr)) attempt->release();
  if (auto* attempt = std::exchange(second_, nullptr)) attempt->release();
  if (auto* service = std::exchange(service_, nullptr)) {
    service->budget.request_ends();
    if (tried_twice_) service->budget.give_back();
  }
  placed_ = Placed();
  lane_.buffers().give(std::move(body_));
  discarded_ = 0;
  passed_ = local_sent_ = 0;
  local_.reset();
  body_done_ = started_ = tried_twice_ = false;
}

void Exchange::on_gone() { end_request(); }

}  // namespace serin::router
