#include "runtime/serving/http_inference.h"

#include <atomic>
#include <optional>

#include "runtime/serving/http_answers.h"

namespace serin::serving {
namespace {

/// Of the outputs that were asked for; of texts what they hold.
size_t bytes_of(const Finished& finished) {
  size_t bytes = 0;
  for (const protocol::WantedOutput& wanted : finished.wanted) {
    const TensorView& output = finished.answer.outputs->tensors[wanted.index];
    bytes += output.bytes();
    if (output.dtype != DType::kString) continue;
    for (const std::string& text : output.span<const std::string>()) bytes += text.size();
  }
  return bytes;
}

}  // namespace

net::Response HttpInference::refusal(const Error& error, std::string_view field) { return error_response(error, field); }

void HttpInference::refuse(Frontend& frontend, std::string_view version, const Error& error, std::string_view field) {
  net::Response response = refusal(error, field);
  if (error.code == Code::kOverloaded) response.headers.set("Retry-After", "1");
  response.headers.set("x-serin-batch", protocol::print_batch_tag(frontend.host.lone_tag()));
  if (!version.empty()) response.headers.set("x-serin-version", version);
  responder_.send(std::move(response));
}

/// A large one, while it is decoded.
struct HttpInference::Reading {
  std::shared_ptr<HttpInference> call;
  std::shared_ptr<Version> version;
  net::Request request;
  std::atomic<bool> begun{false};                         // or given up: whoever comes first
  std::optional<Result<protocol::InferRequest>> decoded;  // nothing: that threw

  void decode() {
    if (!begun.exchange(true)) decoded = call->decode(request, *version, {}, call->field_);
  }
  void give_up() {
    if (!begun.exchange(true)) request.clear();
  }
  void go_on(Frontend& frontend) {
    if (call->responder_.cancelled()) decoded = Error{Code::kCancelled, "the client hung up"};
    if (!decoded) return;  // the Responder answers where it ends
    request.body = {};
    request.share.release();
    HttpInference::go_on(call, frontend, version, request, std::move(*decoded));
  }
};

/// A large one, while it is encoded: what Finished refers to.
struct HttpInference::Writing {
  std::shared_ptr<HttpInference> call;
  std::shared_ptr<const Version> version;
  std::vector<protocol::WantedOutput> wanted;
  std::string id;
  Answer answer;
  std::optional<net::Response> response;  // nothing: there is nobody to read it, or that threw

  void encode(net::Response blank) {
    if (!call->responder_.cancelled()) response = call->response_to({*version, wanted, id, std::move(answer)}, std::move(blank));
  }
  void send() {
    if (response) call->responder_.send(std::move(*response));
  }
};

void HttpInference::start(const std::shared_ptr<HttpInference>& call, Frontend& frontend, Result<std::shared_ptr<Version>> version,
                          std::string_view asked, net::Request&& request) {
  call->arrived_ = Clock::now();
  call->field_.clear();
  if (!version) return call->refuse(frontend, asked, version.error());
  if (request.body.size() <= net::kMostOnIo)
    return go_on(call, frontend, *version, request, call->decode(request, **version, frontend.leftovers().take_request(), call->field_));
  const auto reading = std::make_shared<Reading>(call, std::move(*version), std::move(request));
  call->responder_.on_cancel([weak = std::weak_ptr(reading)] {
    if (const auto held = weak.lock()) held->give_up();
  });
  net::aside([reading] { reading->decode(); }, [reading, &frontend] { reading->go_on(frontend); });
}

void HttpInference::go_on(const std::shared_ptr<HttpInference>& call, Frontend& frontend, const std::shared_ptr<Version>& version,
                          const net::Request& request, Result<protocol::InferRequest> decoded) {
  const bool shadow = request.headers.get("x-serin-shadow") == "1";
  const auto bad = [&](const Error& error, std::string_view field) {
    if (!shadow) version->metrics().refused(error, {}, AskedBy{.http = true, .api = call->api()});
    call->refuse(frontend, version->version(), error, field);
  };
  if (!decoded) return bad(decoded.error(), call->field_);
  auto deadline = Clock::time_point::max();
  if (const auto header = request.headers.get(protocol::kTimeHeader); !header.empty()) {
    const auto left = protocol::parse_time_left(header);
    if (!left) return bad(left.error(), protocol::kTimeHeader);
    deadline = call->arrived_ + *left;
  }
  const auto inference = Inference::start(frontend,
                                          {.version = version,
                                           .request = std::move(*decoded),
                                           .arrived = call->arrived_,
                                           .deadline = deadline,
                                           .shadow = shadow,
                                           .door = Trace::Door::kHttp,
                                           .api = call->api(),
                                           .received = request.received},
                                          [call](const Finished& finished) { answer(call, finished); });
  call->responder_.on_cancel([weak = std::weak_ptr(inference)] {
    if (const auto held = weak.lock()) held->cancel();
  });
}

void HttpInference::answer(const std::shared_ptr<HttpInference>& call, const Finished& finished) {
  if (!finished.answer.outputs || bytes_of(finished) <= net::kMostOnIo)
    return call->responder_.send(call->response_to(finished, call->responder_.blank()));
  const auto writing =
      std::make_shared<Writing>(call, finished.version.shared_from_this(), finished.wanted, std::string(finished.id), finished.answer);
  net::aside([writing, blank = call->responder_.blank()]() mutable { writing->encode(std::move(blank)); }, [writing] { writing->send(); });
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
