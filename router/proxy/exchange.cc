// exchange.cc: a request comes in, is placed, and goes out in an attempt, or in two. What becomes of those: exchange_answer.cc.

#include "router/proxy/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "router/proxy/own_answers.h"

namespace serin::router {
namespace {

constexpr size_t kReplayBytes = size_t{1} << 20;    // of a request's body kept so that it can be sent again
constexpr size_t kWindowBytes = size_t{256} << 10;  // of one that is larger
constexpr size_t kStartBytes = size_t{64} << 10;    // then its attempt begins, though the body is not complete
constexpr std::chrono::hours kNoTime{24};           // of a call whose messages stream and whose client gives no time

}  // namespace

Exchange::Exchange(Router& router, Workplace& place, net::ServerStream& client)
    : router_(router), place_(place), lane_(place.lane), client_(client), hedge_alarm_(this, [](void* self) {
        static_cast<Exchange*>(self)->hedge_or_rescue();
      }) {}

Exchange::~Exchange() { on_gone(); }

// ---- the request ----

void Exchange::on_request(net::Head& head) {
  request_ = &head;
  target_ = {};
  if (net::is_grpc(head)) return begin_call(head);
  const auto target = parse_target(head);
  Service* const service = target ? router_.find(*target) : nullptr;
  if (service == nullptr) {
    return answer_ourselves(answer_of_ours(router_, head, target));
  }
  target_ = *target;
  route(service);
}

/// By its header, or by its first message; or it is a question to the router itself.
void Exchange::begin_call(net::Head& head) {
  target_.grpc = true;
  body_ = lane_.buffers().take();
  const ModelMethod* method = find_model_method(head.path);
  target_.naming = method ? method->naming : Naming::kNone;
  target_.infer = !method || method->infer;
  target_.streams = !method || method->streams;
  if (const auto named = head.headers.get("x-serin-service"); !named.empty()) {
    model_ = named;
    target_.service = model_;
    route(router_.find(target_));
  } else if (!method) {
    answer_ourselves(call_of_ours(router_, head));
  } else {
    state_.enter(State::kNaming);
  }
  if (state_.in(State::kOwn)) send_own();  // a client that streams may not end before it is told
}

/// False: that much has not come yet, or the client has been told what is wrong.
bool Exchange::name_model(bool complete) {
  const auto named = model_named_in(target_.naming, body_.data(), complete);
  if (!named) {
    refuse(400, named.error().message);
  } else if (*named) {
    model_ = **named;
    target_.service = model_;
    route(router_.find(target_));
  }
  if (state_.in(State::kOwn)) send_own();
  return state_.in(State::kPlaced);
}

void Exchange::refuse(int status, std::string_view message) {
  answer_ourselves(target_.grpc ? net::grpc_error(net::grpc_status_of(status), message) : net::json_error(status, message));
  if (status == 400) own_.headers.set("x-serin-code", code_name(Code::kInvalidArgument));
}

/// send_own() sends it.
void Exchange::answer_ourselves(net::Response response) {
  state_.enter(State::kOwn);
  own_ = std::move(response);
}

/// False: what the client says of its time makes no sense.
bool Exchange::take_time(const net::Headers& headers, Time now) {
  const auto given = time_given(headers, target_.grpc);
  if (!given) {
    refuse(400, given.error().message);
    return false;
  }
  const std::chrono::nanoseconds most = target_.streams ? std::chrono::nanoseconds(kNoTime) : service_->config->request_timeout;
  target_.timeout = given->has_value();
  deadline_ = now + std::min(most, given->value_or(most));
  return true;
}

void Exchange::route(Service* service) {
  net::Head& head = *request_;
  if (service == nullptr)
    return refuse(404, fmt::format("Request for unknown model: '{}' is not found: the router has no such service", target_.service));
  const Time now = lane_.loop().now();
  if (body_.capacity() == 0) body_ = lane_.buffers().take();
  state_.enter(State::kPlaced);
  service_ = service;
  service_->budget.request_begins();
  length_ = head.framing == net::Framing::kChunked ? std::nullopt
                                                   : std::optional(head.framing == net::Framing::kLength ? head.content_length : 0);
  if (!take_time(head.headers, now)) return;
  auto placed = place_request(*service_, lane_, target_, head.headers, now);
  if (!placed) return refuse(400, placed.error().message);
  placed_ = *std::move(placed);
  placed_.copy.wanted = placed_.copy.wanted && !target_.streams;
  rewrite_request(head, client_.peer(), target_.infer, scratch_);
}

std::span<char> Exchange::body_room(std::optional<uint64_t> left) {
  if (state_.in(State::kOwn, State::kIdle)) {  // nobody reads it
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
  if (state_.in(State::kNaming) && !name_model(end)) return;
  if (state_.in(State::kOwn) && end) return send_own();
  if (state_.in(State::kOwn, State::kIdle)) return;
  if (state_.in(State::kPlaced)) {
    if (!can_start(end)) return;
    classify_for(placed_, end);
    for (Placement& other : placed_.others) classify_for(other, end);
    state_.enter(State::kTrying);
    return attempt(placed_.version, placed_.purpose);
  }
  for (Attempt* attempt : {first_, second_}) {
    if (!attempt) continue;
    send_body(*attempt);
    extend(*attempt);
  }
  if (end) plan_hedge();
}

void Exchange::classify_for(Placement& placement, bool end) {
  if (!placement.spec || placed_.purpose != Purpose::kDrawn || placement.spec->guard.slices.empty()) return;
  placement.classes = classify(placement.spec->guard.slices,
                               {.headers = request_->headers, .body = body_.data(), .complete = end, .length = length_}, place_.json);
}

/// Whether a class of the request, as evidence, depends on its body.
bool Exchange::body_decides_class() const {
  const auto reads = [](const Placement& placement) { return placement.spec && reads_body(placement.spec->guard.slices); };
  return placed_.purpose == Purpose::kDrawn && (reads(placed_) || std::ranges::any_of(placed_.others, reads));
}

/// A slow client must not hold a backend. Of a call the first message is enough: the second may be an answer to the answer.
bool Exchange::can_start(bool end) const {
  if (end || body_.size() >= (body_decides_class() ? kReplayBytes : kStartBytes)) return true;
  if (!target_.grpc) return false;
  const std::string_view body = body_.data();
  return body.size() >= net::GrpcPrefix::kBytes && body.size() - net::GrpcPrefix::kBytes >= net::grpc_length(body);
}

/// Where messages stream and the client gives no time, nothing but silence is too long.
void Exchange::extend(Attempt& attempt) {
  if (!target_.streams || attempt.stream() == nullptr) return;
  const bool backend_owes = body_done_ && !attempt.answered();
  const auto patience = backend_owes ? service_->config->request_timeout : router_.silence;
  attempt.stream()->set_deadline(std::min(deadline_, lane_.loop().now() + patience));
}

/// On `version`, or on stable where that has nobody to give; the client is told where nobody can.
void Exchange::attempt(size_t version, Purpose purpose, const EndpointState* avoid) {
  if (lane_.loop().now() >= deadline_) return fail(version, Code::kDeadlineExceeded, "the deadline passed before a version answered");
  if (Endpoints& wanted = *service_->versions[version]; wanted.healthy() == 0) wanted.count_unserved();
  if (begin(version, purpose, avoid)) return;
  const size_t stable = placed_.split.stable;
  if (version != stable && purpose != Purpose::kForced) {
    placed_.judged = false;
    return attempt(stable, Purpose::kFallback);
  }
  const auto list = service_->versions[version]->list();
  if (list->empty()) return fail(version, Code::kUnavailable, "it has no endpoint at present");
  if (std::ranges::none_of(*list, [this](const auto& endpoint) { return endpoint->speaks(target_.grpc); }))
    return fail(version, Code::kUnsupported, target_.grpc ? "none of its endpoints speaks gRPC" : "its endpoints speak gRPC only");
  fail(version, Code::kOverloaded, "every endpoint has reached its limit of requests in progress");
}

/// False: the version has no endpoint to give.
bool Exchange::begin(size_t version, Purpose purpose, const EndpointState* avoid) {
  Attempt& attempt = place_.attempts.take();
  if (!attempt.start(*this, *service_, target_, version, purpose, placed_, deadline_, avoid)) {
    place_.attempts.give_back(attempt);
    return false;
  }
  (first_ ? second_ : first_) = &attempt;
  if (tried_twice_) service_->retries->add();
  const bool drawn = purpose == Purpose::kDrawn && placed_.spec != nullptr;
  const auto looks = [](const Placement& other) { return other.draw.look; };
  const bool is_read = placed_.draw.look || attempt.on_canary() || placed_.copy.wanted || std::ranges::any_of(placed_.others, looks);
  attempt.keep_body = (drawn && !target_.streams && is_read) || awaits_label();
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

}  // namespace serin::router
