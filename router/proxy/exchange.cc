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
    size_t{64} << 10;                      // goes to the client in one piece, so that one cut off is an error and not half an answer
constexpr double kFailoverShare = 0.20;    // of the requests under way, plus 3: most that go to a second endpoint
constexpr std::chrono::hours kNoTime{24};  // of a call whose messages stream and whose client gives no time
constexpr int64_t kMostMirrored = 16;      // mirrored requests under way at once, for each service: a stuck canary must not fill our memory

// Milliseconds the client gives; nothing where it does not say, a negative number where what it says is no number.
std::optional<int64_t> client_timeout_ms(const net::Headers& headers) {
  const auto text = headers.get("x-serin-timeout-ms");
  if (text.empty()) return std::nullopt;
  int64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  return ec == std::errc() && end == text.data() + text.size() && value > 0 && value <= 86'400'000 ? value : -1;
}

bool is_good(Outcome outcome) { return outcome == Outcome::kOk || outcome == Outcome::kNeutral; }

}  // namespace

Exchange::Exchange(Router& router, Lane& lane, net::ServerStream& client)
    : router_(router), lane_(lane), client_(client), hedge_alarm_(this, [](void* self) { static_cast<Exchange*>(self)->hedge(); }) {}

Exchange::~Exchange() { on_gone(); }

// ---- the request ----

void Exchange::on_request(net::Head& head) {
  request_ = &head;
  target_ = {};
  if (net::is_grpc(head)) return begin_call(head);
  const auto target = parse_target(head);
  Service* const service = target ? router_.find(*target) : nullptr;
  if (service == nullptr) {
    local_ = answer_of_ours(router_, head, target);
    return;
  }
  target_ = *target;
  route(service);
}

/// By its header, or by its first message; or it is a question to the router itself.
void Exchange::begin_call(net::Head& head) {
  target_.grpc = true;
  body_ = lane_.buffers().take();
  const ModelMethod* method = find_model_method(head.path);
  target_.names_model = method != nullptr;
  target_.infer = !method || method->infer;
  target_.streams = !method || method->streams;
  if (const auto named = head.headers.get("x-serin-service"); !named.empty()) {
    model_ = named;
    target_.service = model_;
    route(router_.find(target_));
  } else if (!method) {
    local_ = call_of_ours(router_, head);
  } else {
    naming_ = true;
  }
  if (local_) send_local();  // a client that streams may not end before it is told
}

/// False: that much has not come yet, or the client has been told what is wrong.
bool Exchange::name_model(bool complete) {
  const auto named = model_named_in(body_.data(), complete);
  if (!named) {
    refuse(400, named.error().message);
  } else if (*named) {
    naming_ = false;
    model_ = **named;
    target_.service = model_;
    route(router_.find(target_));
  }
  if (local_) send_local();
  return !naming_ && service_ != nullptr;
}

void Exchange::refuse(int status, std::string_view message) {
  naming_ = false;
  local_ = target_.grpc ? net::grpc_error(net::grpc_status_of(status), message) : net::json_error(status, message);
  if (status == 400) local_->headers.set("x-serin-code", code_name(Code::kInvalidArgument));
}

/// False: what the client says of its time makes no sense.
bool Exchange::take_time(net::Headers& headers, Time now) {
  deadline_ = now + (target_.streams ? std::chrono::nanoseconds(kNoTime) : service_->config->request_timeout);
  if (const auto ms = client_timeout_ms(headers)) {
    if (*ms < 0) {
      refuse(400, "header x-serin-timeout-ms must be a whole number of milliseconds, from 1 to 86400000");
      return false;
    }
    target_.timeout = true;
    deadline_ = std::min(deadline_, now + std::chrono::milliseconds(*ms));
  }
  if (!target_.grpc || !headers.has(kGrpcTimeout)) return true;
  const auto given = net::parse_grpc_timeout(headers.get(kGrpcTimeout));
  if (!given) {
    refuse(400, "header grpc-timeout must be a number of at most eight digits and one of H M S m u n");
    return false;
  }
  target_.timeout = true;
  deadline_ = std::min(deadline_, now + *given);
  return true;
}

void Exchange::route(Service* service) {
  net::Head& head = *request_;
  if (service == nullptr)
    return refuse(404, fmt::format("Request for unknown model: '{}' is not found: the router has no such service", target_.service));
  const Time now = net::loop_time();
  if (body_.capacity() == 0) body_ = lane_.buffers().take();
  service_ = service;
  service_->budget.request_begins();
  length_ = head.framing == net::Framing::kChunked ? std::nullopt
                                                   : std::optional(head.framing == net::Framing::kLength ? head.content_length : 0);
  if (!take_time(head.headers, now)) return;
  auto placed = place_request(*service_, lane_, target_, head.headers, now);
  if (!placed) return refuse(400, placed.error().message);
  placed_ = *std::move(placed);
  placed_.mirror = placed_.mirror && !target_.streams;
  rewrite_request(head, client_.peer(), scratch_);
}

std::span<char> Exchange::body_room(std::optional<uint64_t> left) {
  if (local_ || (!service_ && !naming_)) {  // nobody reads it
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
  if (naming_ && !name_model(end)) return;
  if (local_) {
    if (end) send_local();
    return;
  }
  if (!service_) return;
  if (!started_) {
    if (!can_start(end)) return;
    started_ = true;
    return attempt(placed_.version, placed_.purpose);
  }
  for (Attempt* attempt : {first_, second_}) {
    if (!attempt) continue;
    send_body(*attempt);
    extend(*attempt);
  }
  if (end) plan_hedge();
}

/// A slow client must not hold a backend. Of a call the first message is enough: the second may be an answer to the answer.
bool Exchange::can_start(bool end) const {
  if (end || body_.size() >= kStartBytes) return true;
  if (!target_.grpc) return false;
  const std::string_view body = body_.data();
  return body.size() >= net::GrpcPrefix::kBytes && body.size() - net::GrpcPrefix::kBytes >= net::grpc_length(body);
}

/// Where messages stream and the client gives no time, nothing but silence is too long.
void Exchange::extend(Attempt& attempt) {
  if (!target_.streams || attempt.stream() == nullptr) return;
  const bool backend_owes = body_done_ && !attempt.answered();
  const auto patience = backend_owes ? service_->config->request_timeout : router_.silence;
  attempt.stream()->set_deadline(std::min(deadline_, net::loop_time() + patience));
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
  const auto list = service_->versions[version]->list();
  if (list->empty()) return fail(version, Code::kUnavailable, "it has no endpoint just now");
  if (std::ranges::none_of(*list, [this](const auto& endpoint) { return endpoint->speaks(target_.grpc); }))
    return fail(version, Code::kUnsupported, target_.grpc ? "none of its endpoints speaks gRPC" : "its endpoints speak gRPC only");
  fail(version, Code::kOverloaded, "every endpoint has as many requests under way as it may have");
}

/// False: the version has no endpoint to give.
bool Exchange::begin(size_t version, Purpose purpose, const EndpointState* avoid) {
  Attempt& attempt = lane_.take_attempt();
  if (!attempt.start(*this, *service_, target_, version, purpose, placed_, deadline_, avoid)) {
    lane_.give_back(attempt);
    return false;
  }
  (first_ ? second_ : first_) = &attempt;
  if (tried_twice_) service_->retries->add();
  const bool drawn = purpose == Purpose::kDrawn && placed_.spec != nullptr;
  attempt.keep_body = drawn && !target_.streams && (placed_.draw.look || attempt.on_canary() || placed_.mirror);
  send_request(attempt);
  extend(attempt);
  if (body_done_) plan_hedge();
  return true;
}

void Exchange::send_request(Attempt& attempt) {
  // A chunked body that is here already goes on with its length: some servers take nothing else.
  auto length = length_ || !body_done_ || discarded_ > 0 ? length_ : std::optional<uint64_t>(body_.size());
  if (target_.grpc && (!body_done_ || !body_.empty())) length.reset();  // what is passed on may be longer
  attempt.send_head(*request_, target_, length);
  send_body(attempt);
}

void Exchange::send_body(Attempt& attempt) {
  if (attempt.stream() == nullptr) return;
  const std::string_view rest = body_.data().substr(static_cast<size_t>(attempt.sent - discarded_));
  attempt.sent += attempt.write(rest, body_done_);
  const uint64_t unsent = discarded_ + body_.size() - attempt.sent;
  attempt.wait_for_client(!body_done_ && (unsent == 0 || target_.streams));
  if (!body_done_ && unsent < kWindowBytes) client_.read_more();
}

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
  else if (attempt.ended() && (!target_.grpc || (attempt.body().empty() && attempt.trailers().empty())))
    length = attempt.body().size();
  passed_ = 0;
  client_.begin_answer({.status = head.status, .headers = head.headers, .length = length});
  pass_on(attempt);
}

void Exchange::pass_on(Attempt& attempt) {
  if (const net::Failure* failure = attempt.failure()) {  // in the middle of the answer
    if (target_.grpc) return end_call(attempt.version(), *failure);
    client_.abort();  // all that is left is to let the client notice
    return end_request();
  }
  if (attempt.keep_body && attempt.body().size() >= Attempt::kKeptBytes) {  // too large to be looked at
    attempt.keep_body = placed_.mirror = false;
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
  if (local_) return send_local();
  if (delivering_) pass_on(*delivering_);
}

void Exchange::finish(Attempt& attempt) {
  if (target_.grpc)
    lane_.count_answer(*service_, attempt.version(), attempt.grpc_status());
  else
    lane_.count_answer(*service_, attempt.version(), attempt.status());
  if (placed_.mirror && attempt.keep_body && attempt.purpose() == Purpose::kDrawn) mirror(attempt);
  end_request();
}

void Exchange::mirror(Attempt& attempt) {
  if (service_->mirrored.load(std::memory_order_relaxed) >= kMostMirrored) return service_->mirrors_dropped->add();
  Endpoints& canary = *service_->versions[placed_.split.canary];
  EndpointState* endpoint = canary.choose(lane_.endpoints(canary), lane_.random(), net::loop_time(), /*avoid=*/nullptr, target_.grpc);
  if (endpoint == nullptr || !can_send_again()) return service_->mirrors_dropped->add();
  lane_.take_shadow().start(*service_, placed_, attempt, *endpoint, *request_, target_, std::move(body_));
}

// ---- answers of our own ----

void Exchange::fail(size_t version, Code code, std::string_view what) {
  const std::string& name = service_->versions[version]->version();
  const bool busy = code == Code::kUnavailable || code == Code::kOverloaded;
  const int status = code == Code::kDeadlineExceeded ? 504 : code == Code::kUnsupported ? 501 : busy ? 503 : 502;
  refuse(status, fmt::format("service '{}' version '{}': {}", target_.service, name, what));
  local_->headers.set("x-serin-code", code_name(code));
  local_->headers.set("x-serin-version", name);
  if (busy && !target_.grpc) local_->headers.set("Retry-After", "1");
  if (target_.grpc)
    lane_.count_answer(*service_, version, net::grpc_status_of(status));
  else
    lane_.count_answer(*service_, version, status);
  send_local();
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

void Exchange::send_local() {
  const bool trailers = !local_->trailers.empty();
  const auto length = trailers ? std::nullopt : std::optional<uint64_t>(local_->body.size());
  if (local_sent_ == 0) client_.begin_answer({.status = local_->status, .headers = local_->headers, .length = length});
  if (trailers) client_.set_trailers(local_->trailers);
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
  naming_ = body_done_ = started_ = tried_twice_ = false;
}

void Exchange::on_gone() { end_request(); }

}  // namespace serin::router
