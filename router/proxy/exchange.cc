// exchange.cc: draw, attempt, observe, shield, mirror. Every attempt that was drawn is observed once, whatever becomes of it; nothing else ever is.

#include "router/proxy/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "router/proxy/verdict.h"
#include "runtime/base/log.h"
#include "runtime/net/message_writer.h"

namespace serin::router {
namespace {

constexpr int64_t kMostMirrored = 16;  // mirrored requests under way at once, for each service: a stuck canary must not fill our memory

// Milliseconds the client gives; nothing where it does not say, a negative number where what it says is no number.
std::optional<int64_t> client_timeout_ms(const net::Request& request) {
  const auto text = request.headers.get("x-serin-timeout-ms");
  if (text.empty()) return std::nullopt;
  int64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  return ec == std::errc() && end == text.data() + text.size() && value > 0 && value <= 86'400'000 ? value : -1;
}

/// Clients learn what went wrong, not where our machines are: "10.0.3.7:8000: cannot connect: Connection refused" without its beginning.
Error without_address(Error error, const net::Origin& origin) {
  const std::string prefix = net::authority(origin) + ": ";
  if (error.message.starts_with(prefix)) error.message.erase(0, prefix.size());
  return error;
}

}  // namespace

uint64_t Lane::random() {
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

Exchange::Exchange(Service& service, Lane& lane, net::Request request, Target target, net::Responder responder)
    : service_(service), lane_(lane), request_(std::move(request)), target_(std::move(target)), responder_(std::move(responder)) {
  body_ = std::make_shared<const std::string>(std::move(request_.body));
  deadline_ = arrived_ + service_.config->request_timeout;
  service_.active.fetch_add(1, std::memory_order_relaxed);
}

Exchange::~Exchange() {
  service_.active.fetch_sub(1, std::memory_order_relaxed);
  if (shielded_) service_.shielded.fetch_sub(1, std::memory_order_relaxed);
}

std::chrono::nanoseconds Exchange::time_left() const { return deadline_ - std::chrono::steady_clock::now(); }

void Exchange::begin() {
  if (const auto ms = client_timeout_ms(request_)) {
    if (*ms < 0) return refuse(400, "header x-serin-timeout-ms must be a whole number of milliseconds, from 1 to 86400000");
    deadline_ = std::min(deadline_, arrived_ + std::chrono::milliseconds(*ms));
  }
  responder_.on_cancel([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->done_) return;
    self->done_ = true;  // a client that hung up says nothing about the version
    self->call_.cancel();
    if (self->endpoint_) self->endpoint_->in_flight.fetch_sub(1, std::memory_order_relaxed);
    self->guard_deadline_ = net::Timer();
  });

  split_ = service_.controller->split(service_.index);
  const bool rollout = split_.canary != Split::kNoCanary;
  if (rollout) spec_ = service_.controller->spec(service_.index);

  if (const auto forced = request_.headers.get("x-serin-force-version"); !forced.empty() && service_.config->force_header) {
    for (size_t version = 0; version < service_.versions.size(); ++version)
      if (service_.versions[version]->version() == forced) return attempt(version, Purpose::kForced);
    return refuse(400, fmt::format("header x-serin-force-version: service '{}' has no version '{}'", target_.service, forced));
  }
  if (!target_.infer) return attempt(split_.stable, Purpose::kFallback);  // metadata is stable's
  if (!rollout) {
    judged_ = true;  // stable's latencies are the next rollout's baseline
    return attempt(split_.stable, Purpose::kDrawn);
  }
  const bool eligible = service_.versions[split_.canary]->healthy() > 0 && service_.versions[split_.stable]->healthy() > 0;
  const bool canary = lane_.random() % rollout::kAll < split_.weight_ppm;
  judged_ = eligible;
  if (canary && service_.versions[split_.canary]->healthy() > 0) return attempt(split_.canary, Purpose::kDrawn);
  attempt(split_.stable, canary ? Purpose::kFallback : Purpose::kDrawn);
}

void Exchange::attempt(size_t version, Purpose purpose, const EndpointState* avoid) {
  const auto left = time_left();
  if (left <= std::chrono::nanoseconds(0))
    return finish(version, Error{Code::kDeadlineExceeded, "the deadline passed before a version answered"});
  EndpointState& endpoint = service_.versions[version]->choose(lane_.random(), avoid);
  endpoint_ = &endpoint;
  endpoint.in_flight.fetch_add(1, std::memory_order_relaxed);

  net::Outgoing outgoing = make_outgoing(request_, target_, endpoint.config);
  outgoing.body = body_->empty() && request_.method != "POST" ? nullptr : body_;
  outgoing.headers.set("x-serin-timeout-ms",
                       std::to_string(std::max<int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(left).count())));
  if (purpose == Purpose::kDrawn && judged_ && spec_ && spec_->guard.deadline && *spec_->guard.deadline < left) {
    guard_deadline_ = net::after(*spec_->guard.deadline, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->in_flight_deadline();
    });
  }
  const auto started = std::chrono::steady_clock::now();
  call_ = lane_.client.send(endpoint.config.origin, std::move(outgoing), left,
                            [self = shared_from_this(), version, purpose, started](Result<net::Response> answer) {
                              self->answered(version, purpose, started, std::move(answer));
                            });
}

// Still in flight at the guard's deadline: that is the bad event, now, not when it ends. The canary's clients get stable's answer.
void Exchange::in_flight_deadline() {
  if (done_ || observed_) return;
  const bool canary = endpoint_->index >= service_.versions[split_.canary]->all().front()->index &&
                      endpoint_->index <= service_.versions[split_.canary]->all().back()->index;
  const size_t version = canary ? split_.canary : split_.stable;
  observe(version, rollout::Outcome::kDeadline, *spec_->guard.deadline, nullptr);
  if (!canary || !shield_allows(rollout::Outcome::kDeadline)) return;
  call_.cancel();
  endpoint_->in_flight.fetch_sub(1, std::memory_order_relaxed);
  endpoint_ = nullptr;
  shielded_ = true;
  service_.shielded.fetch_add(1, std::memory_order_relaxed);
  service_.retries->add();
  attempt(split_.stable, Purpose::kShield);
}

void Exchange::answered(size_t version, Purpose purpose, Time started, Result<net::Response> answer) {
  if (done_) return;
  endpoint_->in_flight.fetch_sub(1, std::memory_order_relaxed);
  if (!answer) {
    log::debug("service '{}' version '{}': {}", target_.service, service_.versions[version]->version(), answer.error().message);
    answer = without_address(answer.error(), endpoint_->config.origin);
  }
  const auto latency = std::chrono::steady_clock::now() - started;
  const rollout::Outcome outcome = classify(answer, spec_ != nullptr && target_.infer);
  if (purpose == Purpose::kDrawn && judged_) observe(version, outcome, latency, &answer);
  const EndpointState* used = std::exchange(endpoint_, nullptr);
  guard_deadline_ = net::Timer();
  service_.latency[version]->observe(std::chrono::duration<double>(latency).count());

  // A canary without capacity is no evidence against its answers, but its clients need not feel it.
  const bool busy = answer && answer->status == 429;
  if (purpose == Purpose::kDrawn && version != split_.stable && shield_allows(busy ? rollout::Outcome::kError : outcome)) {
    shielded_ = true;
    service_.shielded.fetch_add(1, std::memory_order_relaxed);
    service_.retries->add();
    return attempt(split_.stable, Purpose::kShield);
  }
  if (failover_helps(version, purpose, answer)) return attempt(version, Purpose::kFailover, used);
  const bool sampled = purpose == Purpose::kDrawn && judged_ && spec_ && version == split_.stable && split_.shadow_ppm > 0 &&
                       lane_.random() % rollout::kAll < split_.shadow_ppm;
  if (sampled) {
    Result<net::Response> copy = answer;
    finish(version, std::move(answer));
    return mirror(std::move(copy), used->index);
  }
  finish(version, std::move(answer));
}

void Exchange::observe(size_t version, rollout::Outcome outcome, std::chrono::nanoseconds latency, const Result<net::Response>* answer) {
  if (observed_) return;
  observed_ = true;
  rollout::Observation observation;
  observation.arm = version == split_.stable ? rollout::Arm::kStable : rollout::Arm::kCanary;
  observation.epoch = split_.epoch;
  observation.weight_ppm = split_.weight_ppm;
  observation.outcome = outcome;
  observation.latency = latency;
  observation.endpoint = endpoint_->index;
  if (answer && *answer) observation.batch = batch_of(**answer);
  observation.answered = !answer || *answer || answer->error().code != Code::kUnavailable;
  service_.controller->observe(service_.index, observation);
}

bool Exchange::shield_allows(rollout::Outcome outcome) const {
  using rollout::Outcome;
  if (outcome == Outcome::kOk || outcome == Outcome::kNeutral) return false;
  if (!spec_ || !spec_->shield.retry_stable || shielded_ || time_left() <= std::chrono::nanoseconds(0)) return false;
  const auto budget = static_cast<int64_t>(spec_->shield.budget * static_cast<double>(service_.active.load(std::memory_order_relaxed))) + 3;
  if (service_.shielded.load(std::memory_order_relaxed) < budget) return true;
  service_.retries_denied->add();
  return false;
}

// One endpoint of several went away before the health check saw it: its load is what the others get anyway, so this needs no budget. Once
// only: a request that kills whoever takes it must not go round.
bool Exchange::failover_helps(size_t version, Purpose purpose, const Result<net::Response>& answer) const {
  return !answer && answer.error().code == Code::kUnavailable && purpose != Purpose::kFailover &&
         service_.versions[version]->all().size() > 1 && time_left() > std::chrono::nanoseconds(0);
}

void Exchange::mirror(Result<net::Response> stable_answer, uint32_t stable_endpoint) {
  if (service_.mirrored.load(std::memory_order_relaxed) >= kMostMirrored) return service_.mirrors_dropped->add();
  service_.mirrored.fetch_add(1, std::memory_order_relaxed);
  EndpointState& endpoint = service_.versions[split_.canary]->choose(lane_.random());
  net::Outgoing outgoing = make_outgoing(request_, target_, endpoint.config);
  outgoing.body = body_;
  outgoing.headers.set("x-serin-shadow", "1");
  // The call outlives its handle: nobody waits for it but the comparison.
  lane_.client.send(endpoint.config.origin, std::move(outgoing), service_.config->request_timeout,
                    [self = shared_from_this(), stable_endpoint, canary_endpoint = endpoint.index,
                     stable = std::make_shared<Result<net::Response>>(std::move(stable_answer))](const Result<net::Response>& canary) {
                      self->service_.mirrored.fetch_sub(1, std::memory_order_relaxed);
                      rollout::ShadowPair pair = compare(*stable, canary, self->spec_->guard, self->lane_.random());
                      pair.epoch = self->split_.epoch;
                      pair.stable_endpoint = stable_endpoint;
                      pair.canary_endpoint = canary_endpoint;
                      self->service_.controller->observe(self->service_.index, pair);
                    });
}

void Exchange::finish(size_t version, Result<net::Response> answer) {
  if (done_) return;
  done_ = true;
  const std::string& name = service_.versions[version]->version();
  net::Response response;
  if (answer) {
    response = make_answer(std::move(*answer), name);
  } else {
    const int status = answer.error().code == Code::kDeadlineExceeded ? 504 : answer.error().code == Code::kUnavailable ? 503 : 502;
    response = net::json_error(status, fmt::format("service '{}' version '{}': {}", target_.service, name, answer.error().message));
    response.headers.set("x-serin-code", code_name(answer.error().code));
    response.headers.set("x-serin-version", name);
    if (status == 503) response.headers.set("Retry-After", "1");
  }
  auto& counter = lane_.answers[{&service_, version, response.status}];
  if (!counter)
    counter = service_.metrics->counter("serin_route_requests_total", "Answers given to clients.",
                                        {{"service", target_.service}, {"version", name}, {"code", std::to_string(response.status)}});
  counter->add();
  responder_.send(std::move(response));
}

void Exchange::refuse(int status, const std::string& message) {
  done_ = true;
  net::Response response = net::json_error(status, message);
  response.headers.set("x-serin-code", code_name(Code::kInvalidArgument));
  responder_.send(std::move(response));
}

}  // namespace serin::router
