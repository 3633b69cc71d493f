// exchange_answer.cc: what becomes of attempts: the shield, failover, the hedge; and how an answer, theirs or our own, goes to the client.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "router/proxy/answer_outcome.h"
#include "router/proxy/assigning.h"
#include "router/proxy/exchange.h"
#include "router/proxy/prediction.h"
#include "router/proxy/request_id.h"
#include "router/proxy/spare_time.h"
#include "router/recording/record.h"

namespace serin::router {
namespace {

using rollout::Outcome;

// What goes to the client in one piece, so that one cut off is an error and not half an answer.
constexpr size_t kSmallAnswer = size_t{64} << 10;
constexpr double kFailoverShare = 0.20;  // of the requests under way, plus 3: most that go to a second endpoint
constexpr int64_t kMostMirrored = 16;    // mirrored requests under way at once, for each service: a stuck canary must not fill our memory

bool is_good(Outcome outcome) { return outcome == Outcome::kOk || outcome == Outcome::kNeutral; }

}  // namespace

// ---- what becomes of attempts ----

void Exchange::on_answer_progress(Attempt& attempt) {
  extend(attempt);
  if (&attempt == delivering_) return pass_on(attempt);
  if (attempt.ended() || attempt.overdue()) return resolved(attempt);
  if (!attempt.answered()) return;
  const bool may_be_replaced = attempt.on_canary() && attempt.purpose() == Purpose::kDrawn && placed_.spec;
  const bool other = first_ && second_;
  const net::Head& head = attempt.answer();
  if (target_.streams) {  // a client that still sends may be waiting for no more than the head
    if (may_be_replaced && body_done_ && attempt.body().empty()) return;
    return deliver(attempt);
  }
  const bool soon_whole =
      target_.grpc ? attempt.body().size() < kSmallAnswer : head.framing == net::Framing::kLength && head.content_length <= kSmallAnswer;
  const bool may_fail_over = !tried_twice_ && attempt.body().size() < kSmallAnswer && is_for_another(attempt);
  if ((may_be_replaced && attempt.body().size() < Attempt::kKeptBytes) || (other && attempt.status() >= 400) || soon_whole || may_fail_over)
    return;
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
  if (tried_twice_ || !can_send_again() || lane_.loop().now() >= deadline_) return false;
  const bool shield = attempt.purpose() == Purpose::kDrawn && attempt.on_canary() && placed_.spec && placed_.spec->shield.retry_stable;
  if (shield) {
    if (!second_try_allowed(placed_.spec->shield.budget)) return false;
    drop(attempt);
    this->attempt(placed_.split.stable, Purpose::kShield);
    return true;
  }
  if (!is_for_another(attempt) || !second_try_allowed(kFailoverShare)) return false;
  const size_t version = attempt.version();
  const auto avoid = attempt.endpoint();
  drop(attempt);
  this->attempt(version, Purpose::kFailover, avoid.get());
  return true;
}

/// Its endpoint went away, or began anew and still loads its models, before the health check saw it, and there is another one. This may no
/// longer be in the list itself. Once only: a request that kills each server that takes it must not go round.
bool Exchange::is_for_another(Attempt& attempt) {
  constexpr int kServiceUnavailable = 503;
  const net::Failure* failure = attempt.failure();
  if (failure && !is_silence(failure->code)) return false;
  // A stream may have answered before it ended so.
  const bool unavailable = target_.grpc
                               ? attempt.ended() && attempt.body().empty() && attempt.grpc_status() == net::GrpcStatus::kUnavailable
                               : attempt.status() == kServiceUnavailable;
  if (!failure && !unavailable) return false;
  const auto avoid = attempt.endpoint();
  return std::ranges::any_of(lane_.endpoints(*service_->versions[attempt.version()]), [&](const auto& other) {
    return other != avoid && other->speaks(target_.grpc) && (failure || other->healthy);  // where none is healthy, the checks may be wrong
  });
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
  if (!first_ || second_) return;
  if (!first_->on_canary()) return plan_rescue();
  if (first_->purpose() != Purpose::kDrawn || !placed_.spec || !placed_.spec->shield.retry_stable) return;
  if (const auto after = service_->controller->pace(placed_.track->index).hedge_after; after.count() > 0)
    hedge_alarm_.set(lane_.loop().deadlines(), lane_.loop().now() + after);
}

/// An endpoint that stops without closing its connections is found by its health check alone. That takes a while, and so asking about it is
/// not urgent.
void Exchange::plan_rescue() {
  const Endpoints& version = *service_->versions[first_->version()];
  if (tried_twice_ || lane_.endpoints(version).size() < 2) return;
  hedge_alarm_.set(lane_.loop().deadlines(), lane_.loop().now() + version.config().health.interval);
}

void Exchange::hedge_or_rescue() {
  if (!first_ || second_ || delivering_ || tried_twice_ || !can_send_again() || first_->overdue() || lane_.loop().now() >= deadline_)
    return;
  first_->on_canary() ? hedge() : rescue();
}

/// The first good answer counts.
void Exchange::hedge() {
  if (!second_try_allowed(placed_.spec->shield.budget)) return;
  if (begin(placed_.split.stable, Purpose::kHedge, nullptr)) return service_->hedges->add();
  take_back_second_try();  // stable is full: the canary's answer may still be good, and if not the shield may find stable free
}

/// Of a request that waits at an endpoint which has failed its health check since. The endpoint may still answer, and the first good answer counts.
void Exchange::rescue() {
  if (first_->answered()) return;
  const auto endpoint = first_->endpoint();
  const size_t version = first_->version();
  if (endpoint->healthy || service_->versions[version]->healthy() == 0 || !second_try_allowed(kFailoverShare)) return plan_rescue();
  if (begin(version, Purpose::kFailover, endpoint.get())) return;
  take_back_second_try();
  plan_rescue();
}

void Exchange::take_back_second_try() {
  tried_twice_ = false;
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
  state_.enter(State::kDelivering);
  net::Head& head = attempt.answer();
  rewrite_answer(head, service_->versions[attempt.version()]->version());
  add_assignment(*service_, placed_.assigned, head.headers);
  name_request(head.headers);
  std::optional<uint64_t> length;
  if (head.framing == net::Framing::kLength || request_->method == "HEAD")
    length = head.content_length;
  else if (attempt.ended() && (!target_.grpc || (attempt.body().empty() && attempt.trailers().empty())))
    length = attempt.body().size();
  passed_ = 0;
  client_.begin_answer({.status = head.status, .headers = head.headers, .length = length});
  pass_on(attempt);
}

void Exchange::pass_on(Attempt& attempt) {
  if (attempt.ended()) remember(&attempt);                // before its client can report the label
  if (const net::Failure* failure = attempt.failure()) {  // in the middle of the answer
    if (target_.grpc) return end_call(attempt.version(), *failure);
    client_.abort();  // all that is left is to let the client notice
    return end_request();
  }
  if (attempt.keep_body && attempt.body().size() >= Attempt::kKeptBytes) {  // too large to be looked at
    attempt.keep_body = placed_.copy.wanted = false;
    attempt.body().consume(std::exchange(passed_, 0));
  }
  const std::string_view rest = attempt.body().data().substr(passed_);
  if (attempt.ended() && !attempt.trailers().empty()) client_.set_trailers(attempt.trailers());
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
  if (state_.in(State::kOwn)) return send_own();
  if (delivering_) pass_on(*delivering_);
}

void Exchange::finish(Attempt& attempt) {
  if (target_.grpc)
    lane_.count_answer(*service_, attempt.version(), attempt.grpc_status());
  else
    lane_.count_answer(*service_, attempt.version(), attempt.status());
  if (service_->recorder) record(attempt);
  if (placed_.copy.wanted && attempt.keep_body && attempt.purpose() == Purpose::kDrawn) mirror(attempt);
  end_request();
}

/// Of the request; nothing while it is coming, or where its beginning has gone.
std::optional<std::string_view> Exchange::whole_body() const {
  return body_done_ && discarded_ == 0 ? std::optional(body_.data()) : std::nullopt;
}

/// Tells the client by which ID it may report a label. It may have chosen that ID itself.
void Exchange::name_request(net::Headers& answer) {
  if (!awaits_label()) return;
  request_id_ = request_id_of(*request_, target_, whole_body().value_or(""), place_.json, lane_.random());
  answer.set(kRequestId, request_id_);
}

/// What the client was answered, for the version that was drawn, also where stable answered instead. Null: with an error of our own.
void Exchange::remember(Attempt* answered) {
  if (!awaits_label()) return;
  const auto sent = whole_body();
  const uint64_t asked = sent ? hash_words(*sent) : lane_.random();
  const bool good = answered != nullptr && answered->failure() == nullptr && answered->status() / 100 == 2;
  std::optional<AnswerBody> body;
  if (good && answered->keep_body) body = answer_body(answered->answer().headers, answered->body(), target_.grpc);
  for (const auto& predictions : service_->predictions) {
    Predictions::Entry entry{.assigned = placed_.assigned, .asked = asked, .prediction = {}};
    if (body)
      entry.prediction = read_prediction(*body, predictions->config());
    else if (good)
      entry.prediction = {.kind = Prediction::Kind::kUnread, .why = "its answer was compressed, or larger than 1 MiB"};
    predictions->add(request_id_, std::move(entry), lane_.loop().now());
  }
  placed_.assigned.clear();  // once
}

/// A request that was answered well, and whose whole body is still here.
void Exchange::record(const Attempt& attempt) {
  const auto now = Recorder::Clock::now();
  Recorder& recorder = *service_->recorder;
  if (!recorder.wants(now) || attempt.outcome() != rollout::Outcome::kOk) return;
  if (!target_.infer || target_.streams || !body_done_ || !can_send_again()) return;
  auto made = router::record(recorder.config(), *request_, body_.data(), place_.json);
  if (!made) return;
  made->grpc = target_.grpc;
  made->names_model = target_.naming != Naming::kNone;
  made->at = now;
  recorder.add(*std::move(made));
}

void Exchange::mirror(Attempt& attempt) {
  const Time now = lane_.loop().now();
  Service& track = *placed_.track;
  if (track.mirrored.load(std::memory_order_relaxed) >= kMostMirrored) return service_->mirrors_dropped->add();
  Endpoints& canary = *service_->versions[placed_.split.canary];
  EndpointState* endpoint = canary.choose(lane_.endpoints(canary), lane_.random(), now, /*avoid=*/nullptr, target_.grpc);
  if (endpoint == nullptr || !can_send_again()) return service_->mirrors_dropped->add();
  if (placed_.copy.spare && !begin_copy(*endpoint, now, track)) return;  // nobody asked for it
  place_.shadows.take().start(track, placed_, attempt, *endpoint, *request_, target_, std::move(body_));
}

// ---- answers of our own ----

void Exchange::fail(size_t version, Code code, std::string_view what) {
  const std::string& name = service_->versions[version]->version();
  const bool busy = code == Code::kUnavailable || code == Code::kOverloaded;
  const int status = code == Code::kDeadlineExceeded ? 504 : code == Code::kUnsupported ? 501 : busy ? 503 : 502;
  refuse(status, fmt::format("service '{}' version '{}': {}", target_.service, name, what));
  own_.headers.set("x-serin-code", code_name(code));
  own_.headers.set("x-serin-version", name);
  add_assignment(*service_, placed_.assigned, own_.headers);
  name_request(own_.headers);
  remember(nullptr);
  if (busy && !target_.grpc) own_.headers.set("Retry-After", "1");
  if (target_.grpc)
    lane_.count_answer(*service_, version, net::grpc_status_of(status));
  else
    lane_.count_answer(*service_, version, status);
  send_own();
}

/// What has come of the answer has been passed on; gRPC has a place for what became of it.
void Exchange::end_call(size_t version, const net::Failure& failure) {
  const auto status = failure.code == Code::kDeadlineExceeded ? net::GrpcStatus::kDeadlineExceeded : net::GrpcStatus::kUnavailable;
  net::Headers trailers;
  net::set_grpc_status(trailers, status,
                       fmt::format("service '{}' version '{}': {}", target_.service, service_->versions[version]->version(), failure.what));
  client_.set_trailers(trailers);
  lane_.count_answer(*service_, version, status);
  (void)client_.write({}, /*last=*/true);
  end_request();
}

void Exchange::send_own() {
  const bool trailers = !own_.trailers.empty();
  const auto length = trailers ? std::nullopt : std::optional<uint64_t>(own_.body.size());
  if (own_sent_ == 0) client_.begin_answer({.status = own_.status, .headers = own_.headers, .length = length});
  if (trailers) client_.set_trailers(own_.trailers);
  const std::string_view rest = std::string_view(own_.body).substr(own_sent_);
  const size_t taken = client_.write(rest, /*last=*/true);
  own_sent_ += taken;
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
  passed_ = own_sent_ = 0;
  request_id_.clear();
  if (state_.in(State::kOwn)) own_ = {};
  body_done_ = tried_twice_ = false;
  state_.enter(State::kIdle);
}

void Exchange::on_gone() { end_request(); }

}  // namespace serin::router
