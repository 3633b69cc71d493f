#include "runtime/serving/apis/http_inference.h"

#include <algorithm>
#include <optional>

#include "runtime/serving/apis/http_answers.h"

namespace serin::serving {
namespace {

Error hung_up() { return {Code::kCancelled, "the client hung up"}; }

}  // namespace

net::Response HttpInference::refusal(const Error& error, std::string_view field) { return error_response(error, field); }
size_t HttpInference::work_to_decode(const net::Request& request) const { return request.body.size(); }

void HttpInference::refuse(Frontend& frontend, std::string_view version, const Error& error, std::string_view field) {
  net::Response response = refusal(error, field);
  if (error.code == Code::kOverloaded) response.headers.set("Retry-After", "1");
  response.headers.set("x-serin-batch", protocol::print_batch_tag(frontend.host.lone_tag()));
  if (!version.empty()) response.headers.set("x-serin-version", version);
  responder_.send(std::move(response));
}

/// What is known of a request before its body is read.
struct HttpInference::Arrival {
  std::shared_ptr<HttpInference> call;
  Frontend& frontend;
  std::shared_ptr<Version> version;
  Clock::time_point received, arrived, deadline = Clock::time_point::max();
  bool shadow = false;

  void refuse(const Error& error, std::string_view field = {}) const {
    if (!shadow) version->metrics().refused(error, {}, AskedBy{.http = true, .api = call->api()});
    call->refuse(frontend, version->version(), error, field);
  }
  /// On to the batcher.
  void go_on(Result<protocol::InferRequest> decoded) const {
    if (!decoded) return refuse(decoded.error(), call->field_);
    const auto inference = Inference::start(frontend.inferences(),
                                            {.version = call->meant(version),
                                             .request = std::move(*decoded),
                                             .arrived = arrived,
                                             .deadline = deadline,
                                             .shadow = shadow,
                                             .door = Trace::Door::kHttp,
                                             .api = call->api(),
                                             .received = received},
                                            [call = call](const Finished& finished) { answer(call, finished); });
    call->responder_.on_cancel([weak = std::weak_ptr(inference)] {
      if (const auto held = weak.lock()) held->cancel();
    });
  }
};

/// A large one, until it is decoded.
struct HttpInference::Reading {
  Reading(Arrival how, net::Request&& asked) : arrival(std::move(how)), request(std::move(asked)) {
    if (arrival.deadline != Clock::time_point::max()) alarm.set(arrival.call->responder_.loop().deadlines(), arrival.deadline);
  }
  void decode() {
    if (turn.take()) decoded = arrival.call->decode(request, *arrival.version, {}, arrival.call->field_);
  }
  /// While it waits. What comes of it once it has begun is seen to by go_on() and by Inference, which know the time.
  void give_up(const Error& why) {
    if (!turn.take()) return;
    answered = true;
    let_go_of_body();
    alarm.leave();
    arrival.refuse(why);
  }
  void go_on() {
    alarm.leave();
    if (answered) return;
    let_go_of_body();
    if (arrival.call->responder_.cancelled()) return arrival.refuse(hung_up());
    if (decoded) arrival.go_on(std::move(*decoded));
  }
  void let_go_of_body() {
    clear_for_reuse(request.body);
    request.share.release();
  }

  const Arrival arrival;
  net::Request request;
  net::Turn turn;
  net::Deadline alarm{this, [](void* self) {
                        static_cast<Reading*>(self)->give_up({Code::kDeadlineExceeded, "the deadline passed before the body was read"});
                      }};
  std::optional<Result<protocol::InferRequest>> decoded;  // nothing: that threw; the Responder answers where it ends
  bool answered = false;
};

/// A large one, while it is encoded.
struct HttpInference::Writing {
  void encode() {
    if (turn.take()) response = call->response_to(finished.take(), std::move(blank));
  }
  void give_up() {
    if (turn.take()) finished.drop();
  }
  void send() {
    if (response) call->responder_.send(std::move(*response));
  }

  std::shared_ptr<HttpInference> call;
  KeptFinished finished;
  net::Response blank;
  net::Turn turn;
  std::optional<net::Response> response;  // nothing: there is nobody to read it, or that threw
};

void HttpInference::start(const std::shared_ptr<HttpInference>& call, Frontend& frontend, Result<std::shared_ptr<Version>> version,
                          std::string_view asked, net::Request&& request) {
  if (!version) return call->refuse(frontend, asked, version.error());
  Arrival arrival{.call = call,
                  .frontend = frontend,
                  .version = std::move(*version),
                  .received = request.received,
                  .arrived = request.whole == Clock::time_point() ? Clock::now() : request.whole,
                  .shadow = request.headers.get("x-serin-shadow") == "1"};
  if (const auto header = request.headers.get(protocol::kTimeHeader); !header.empty()) {
    const auto left = protocol::parse_time_left(header);
    if (!left) return arrival.refuse(left.error(), protocol::kTimeHeader);
    arrival.deadline = arrival.arrived + *left;
  }
  if (frontend.longest_http.count() > 0) arrival.deadline = std::min(arrival.deadline, arrival.arrived + frontend.longest_http);
  call->field_.clear();
  const size_t work = call->work_to_decode(request);
  if (work <= net::kMostOnIo && work_in_regions(frontend.shared_memory, request.body) <= net::kMostOnIo)
    return arrival.go_on(call->decode(request, *arrival.version, frontend.inferences().take_request(), call->field_));
  const auto reading = std::make_shared<Reading>(std::move(arrival), std::move(request));
  call->responder_.on_cancel([weak = std::weak_ptr(reading)] {
    if (const auto held = weak.lock()) held->give_up(hung_up());
  });
  call->responder_.loop().aside([reading] { reading->decode(); }, [reading] { reading->go_on(); });
}

void HttpInference::answer(const std::shared_ptr<HttpInference>& call, const Finished& finished) {
  if (!finished.answer.outputs || work_to_encode(finished) <= net::kMostOnIo)
    return call->responder_.send(call->response_to(finished, call->responder_.blank()));
  const auto writing = std::make_shared<Writing>(call, KeptFinished(finished), call->responder_.blank());
  call->responder_.on_cancel([weak = std::weak_ptr(writing)] {
    if (const auto held = weak.lock()) held->give_up();
  });
  call->responder_.loop().aside([writing] { writing->encode(); }, [writing] { writing->send(); });
}

net::Response HttpInference::response_to(const Finished& finished, net::Response blank) {
  const auto& outputs = finished.answer.outputs;
  net::Response response = outputs          ? encode(finished, std::move(blank))
                           : finished.taken ? failure(outputs.error())
                                            : refusal(outputs.error(), {});
  if (response.status == 429) response.headers.set("Retry-After", std::to_string(finished.version.retry_after_seconds()));
  response.headers.set("x-serin-batch", protocol::print_batch_tag(finished.answer.batch));
  response.headers.set("x-serin-version", finished.version.version());
  return response;
}

}  // namespace serin::serving
