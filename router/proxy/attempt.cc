// attempt.cc: every attempt that was drawn is observed once, whatever becomes of it; no other ever is.

#include "router/proxy/attempt.h"

#include <algorithm>
#include <charconv>

#include "router/proxy/answer_outcome.h"
#include "router/proxy/rewrite.h"
#include "router/proxy/spare_time.h"
#include "runtime/base/log.h"

namespace serin::router {

using Clock = std::chrono::steady_clock;

Attempt::Attempt(Lane& lane, Pool<Attempt>& pool)
    : lane_(lane), pool_(pool), alarm_(this, [](void* self) { static_cast<Attempt*>(self)->on_alarm(); }) {}

bool Attempt::start(Owner& owner, Service& service, const Target& target, size_t version, Purpose purpose, const Placement& placement,
                    Time deadline, const EndpointState* avoid) {
  Endpoints& endpoints = *service.versions[version];
  const Endpoints::List& list = lane_.endpoints(endpoints);
  const Time now = Clock::now();
  EndpointState* chosen = endpoints.choose(list, lane_.random(), now, avoid, target.grpc);
  if (chosen == nullptr) return false;
  endpoint_ = chosen->shared_from_this();
  owner_ = &owner;
  service_ = &service;
  version_ = version;
  purpose_ = purpose;
  placement_ = placement;
  started_ = now;
  deadline_ = deadline;
  grpc_ = target.grpc;
  streams_ = target.streams;
  state_.enter(State::kAsked);
  if (may_wait_for_copy(*endpoint_, now, *placement_.track)) observed_ = true;  // it would be evidence of that
  endpoints.begin(*endpoint_);
  set_alarm();
  stream_ = &lane_.upstream(*endpoint_, grpc_).open(*this, deadline);
  return true;
}

void Attempt::send_head(const net::Head& request, const Target& target, std::optional<uint64_t> length) {
  write_target(request, target, endpoint_->config, target_);
  if (target.naming != Naming::kNone) namer_.begin(naming_fields(target.naming, target.service, endpoint_->config.path));
  if (grpc_) {
    // Who gave no time waits for as long as it takes.
    const std::string time_left = target.timeout ? net::print_grpc_timeout(deadline_ - started_) : std::string();
    return stream_->begin_request({.method = request.method,
                                   .target = target_,
                                   .headers = request.headers,
                                   .length = length,
                                   .extra_name = target.timeout ? kGrpcTimeout : std::string_view(),
                                   .extra_value = time_left});
  }
  char left[24];
  const auto ms = std::max<int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(deadline_ - started_).count());
  const auto end = std::to_chars(left, left + sizeof left, ms).ptr;
  stream_->begin_request({.method = request.method,
                          .target = target_,
                          .headers = request.headers,
                          .length = length,
                          .extra_name = "x-serin-timeout-ms",
                          .extra_value = {left, static_cast<size_t>(end - left)}});
}

/// All rollouts that are under way have the same deadline.
bool Attempt::judged_for_any() const { return placement_.judged || std::ranges::any_of(placement_.others, &Placement::judged); }

/// The guard's deadline is for the version: what its client takes to send the request does not count.
void Attempt::set_alarm() {
  const auto& spec = placement_.spec;
  if (purpose_ != Purpose::kDrawn || !judged_for_any() || !spec || !spec->guard.deadline || overdue()) return;
  const Time due = started_ + client_time_ + *spec->guard.deadline;
  if (due < deadline_) alarm_.set(lane_.loop().deadlines(), due);
}

void Attempt::wait_for_client(bool waits) {
  if (first_latency_) return;
  if (waits == (waits_since_ != Time())) return;
  const Time now = Clock::now();
  if (waits) {
    waits_since_ = now;
    return alarm_.clear();
  }
  client_time_ += now - std::exchange(waits_since_, Time());
  set_alarm();
}

size_t Attempt::write(std::string_view bytes, bool last) {
  if (stream_ == nullptr) return 0;
  if (!namer_.active()) return stream_->write(bytes, last);
  constexpr size_t kStep = size_t{64} << 10;
  for (size_t taken = 0;;) {
    const bool all = taken == bytes.size();
    named_.consume(stream_->write(named_.data(), last && all));
    if (!named_.empty() || all) return taken;
    const std::string_view step = bytes.substr(taken, kStep);
    if (named_.capacity() == 0) named_ = lane_.buffers().take();
    namer_.feed(step, named_);
    taken += step.size();
  }
}

// ---- what comes back ----

void Attempt::on_answer(net::Head& head) {
  std::swap(answer_, head);
  state_.enter(State::kAnswering);
  status_ = answer_.status;
  if (body_.capacity() == 0) body_ = lane_.buffers().take();
}

std::span<char> Attempt::body_room(std::optional<uint64_t> left) {
  constexpr size_t kStep = size_t{64} << 10;  // a promised length is believed only as far as bytes follow it
  const size_t most = keep_body ? kKeptBytes : kWindowBytes;
  if (owner_ == nullptr && body_.size() >= most) {  // nobody reads it, and it is too large to be looked at
    body_.clear();
    keep_body = false;
  }
  if (body_.size() >= most) return {};
  const size_t wanted = std::min(std::max(kStep, body_.size()), most - body_.size());
  return body_.room(left ? static_cast<size_t>(std::min<uint64_t>(*left, wanted)) : wanted);
}

void Attempt::on_progress(bool last) {
  if (streams_ && !first_latency_ && !body_.empty()) {
    wait_for_client(false);
    alarm_.clear();  // how long messages go on is for both ends to say
    first_latency_ = Clock::now() - started_ - client_time_;
    if (owner_ == nullptr) {  // nobody reads the rest
      observe(rollout::Outcome::kOk, *first_latency_, rollout::Ending::kAnswered);
      return release();
    }
  }
  if (last) {
    stream_ = nullptr;
    state_.enter(State::kAnswered);
    end();
  }
  if (owner_)
    owner_->on_answer_progress(*this);
  else if (last)
    recycle();
}

void Attempt::on_writable() {
  if (owner_) return owner_->on_request_writable(*this);
  if (stream_) rest_.consume(write(rest_.data(), /*last=*/true));
}

void Attempt::on_failure(const net::Failure& failure) {
  stream_ = nullptr;
  // A kept connection that the server had closed tells nothing about the server: once more, on a fresh one.
  if (failure.stale && owner_ && owner_->can_send_again() && !std::exchange(retried_stale_, true)) {
    sent = 0;
    named_.clear();
    stream_ = &lane_.upstream(*endpoint_, grpc_).open(*this, deadline_, /*fresh=*/true);
    return owner_->send_request(*this);
  }
  state_.enter(answered() ? State::kCutOff : State::kFailed);
  failure_ = failure;
  failure_text_ = failure.what;
  failure_.what = failure_text_;
  log::debug("service '{}' version '{}': {}: {}", service_->config->name, service_->versions[version_]->version(), endpoint_->config.url,
             failure_text_);
  end();
  if (owner_)
    owner_->on_answer_progress(*this);
  else
    recycle();
}

void Attempt::end() {
  const bool failed = failure() != nullptr;
  const bool client_owed = waits_since_ != Time();
  wait_for_client(false);
  const std::chrono::nanoseconds latency = first_latency_ ? *first_latency_ : Clock::now() - started_ - client_time_;
  alarm_.clear();
  const bool look = placement_.spec && purpose_ == Purpose::kDrawn && placement_.draw.look && keep_body;
  if (grpc_ && !failed) read_grpc_status();
  outcome_ = failed ? outcome_of(failure_.code) : grpc_ ? outcome_of(grpc_status_) : outcome_of(status_);
  if (malformed_ && outcome_ == rollout::Outcome::kOk) outcome_ = rollout::Outcome::kError;
  outcome_unread_ = outcome_;
  if (look && outcome_ == rollout::Outcome::kOk) look_at_answer();
  // A request that did not come in time is its client's fault, and a want of descriptors is ours. That a kept connection was closed meanwhile is
  // nobody's. Any other answer to half a request is the version's own.
  const bool client_late = client_owed && (outcome_ == rollout::Outcome::kDeadline || status_ == 408);
  const bool innocent = client_late || (failed && (failure_.code == Code::kOverloaded || (failure_.stale && !retried_stale_)));
  if (innocent) observed_ = true;
  const bool blame = (failed || status_ >= 500) && !innocent;
  service_->versions[version_]->learn(*endpoint_, blame, started_ + client_time_ + latency);
  service_->versions[version_]->end(*endpoint_);
  service_->latency[version_]->observe(std::chrono::duration<double>(latency).count());
  const rollout::Ending ending = failed ? ending_of(failure_) : rollout::Ending::kAnswered;
  const bool broken = ending == rollout::Ending::kBroken;
  if (observe(outcome_, broken ? Clock::now() - started_ : latency, ending) && broken) ask_for_life();
}

void Attempt::ask_for_life() {
  rollout::Observation sign{.epoch = placement_.split.epoch, .outcome = rollout::Outcome::kNeutral, .drawn = false, .sign = true};
  sign.arm = on_canary() ? rollout::Arm::kCanary : rollout::Arm::kStable;
  sign.endpoint = endpoint_->index;
  placement_.track->ask_for_life(endpoint_, sign);
  for (const Placement& other : placement_.others) {
    sign.epoch = other.split.epoch;
    other.track->ask_for_life(endpoint_, sign);
  }
}

void Attempt::look_at_answer() {
  const auto body = answer_body(answer_.headers, body_, grpc_);
  if (!body) return;
  const Look seen = look_at(*body, placement_.spec->guard, placement_.draw.look_weight_ppm, lane_.random());
  output_ = seen.output;
  if (seen.failed) outcome_ = rollout::Outcome::kError;
}

/// From here on status() is what that means in HTTP. An answer that does not say how it ended is none.
void Attempt::read_grpc_status() {
  const auto said = net::grpc_status_in(trailers_);
  grpc_status_ = said ? *said : net::grpc_status_in_answer(answer_.status, answer_.headers);
  status_ = net::http_status_of(grpc_status_);
}

/// False: it is no evidence, or was observed before.
bool Attempt::observe(rollout::Outcome outcome, std::chrono::nanoseconds latency, rollout::Ending ending) {
  if (purpose_ != Purpose::kDrawn || !judged_for_any() || !placement_.draw.evidence || std::exchange(observed_, true)) return false;
  rollout::Observation observation;
  observation.arm = on_canary() ? rollout::Arm::kCanary : rollout::Arm::kStable;
  observation.outcome = outcome;
  observation.latency = latency;
  observation.endpoint = endpoint_->index;
  observation.ending = ending;
  observation.output = output_;
  if (answered() && ending == rollout::Ending::kAnswered) observation.batch = batch_of(answer_.headers);
  if (answered() && ending == rollout::Ending::kAnswered && !observation.batch) observation.batch = batch_of(trailers_);
  for (const Placement& other : placement_.others) observe_for_other(other, observation);
  observe_for(placement_, observation);
  return true;
}

void Attempt::observe_for(const Placement& placement, rollout::Observation& seen) {
  if (!placement.judged) return;
  seen.epoch = placement.split.epoch;
  seen.weight_ppm = placement.draw.weight_ppm;
  seen.drawn = placement.draw.drawn;
  seen.key = placement.draw.key;
  seen.classes = placement.classes;
  placement.track->controller->observe(placement.track->index, seen);
}

/// Whether the body is read, and what of it, each rollout says for itself.
void Attempt::observe_for_other(const Placement& other, rollout::Observation seen) {
  seen.output.reset();
  if (ended() && seen.ending == rollout::Ending::kAnswered) {
    seen.outcome = outcome_unread_;
    const bool read = other.spec && other.draw.look && keep_body && outcome_unread_ == rollout::Outcome::kOk;
    if (const auto body = read ? answer_body(answer_.headers, body_, grpc_) : std::nullopt) {
      const Look look = look_at(*body, other.spec->guard, other.draw.look_weight_ppm, lane_.random());
      seen.output = look.output;
      if (look.failed) seen.outcome = rollout::Outcome::kError;
    }
  }
  observe_for(other, seen);
}

/// Still in flight at the guard's deadline: a bad event there and then, not when an answer comes.
void Attempt::on_alarm() {
  outcome_ = rollout::Outcome::kDeadline;
  observe(outcome_, *placement_.spec->guard.deadline, rollout::Ending::kAnswered);
  if (owner_) return owner_->on_answer_progress(*this);
  release();
}

// ---- ends ----

void Attempt::release_to_judge(std::string_view rest) {
  if (ended() || observed_ || purpose_ != Purpose::kDrawn || !placement_.judged) return release();
  owner_ = nullptr;
  if (!rest.empty()) rest_.append(rest);  // goes out once there is room: there was none, or it would have been sent
  stream_->read_more();                   // the owner may have stopped
}

void Attempt::release() {
  owner_ = nullptr;
  if (ended()) return recycle();
  if (auto* stream = std::exchange(stream_, nullptr)) stream->cancel();
  service_->versions[version_]->end(*endpoint_);
  recycle();
}

void Attempt::recycle() {
  alarm_.clear();
  placement_.spec.reset();
  placement_.classes.reset();
  placement_.others.clear();
  endpoint_.reset();
  owner_ = nullptr;
  stream_ = nullptr;
  answer_.clear();
  trailers_.clear();
  namer_.begin("");
  lane_.buffers().give(std::move(named_));
  grpc_status_ = net::GrpcStatus::kOk;
  first_latency_.reset();
  status_ = 0;
  sent = 0;
  waits_since_ = Time();
  client_time_ = {};
  lane_.buffers().give(std::move(rest_));
  outcome_ = rollout::Outcome::kOk;
  output_.reset();
  keep_body = grpc_ = streams_ = malformed_ = observed_ = retried_stale_ = false;
  state_.enter(State::kFree);
  lane_.buffers().give(std::move(body_));
  pool_.give_back(*this);
}

}  // namespace serin::router
