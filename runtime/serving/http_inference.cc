#include "runtime/serving/http_inference.h"

#include "runtime/serving/http_answers.h"

namespace serin::serving {

net::Response HttpInference::refusal(const Error& error, std::string_view field) { return error_response(error, field); }

void HttpInference::refuse(Frontend& frontend, std::string_view version, const Error& error, std::string_view field) {
  net::Response response = refusal(error, field);
  if (error.code == Code::kOverloaded) response.headers.set("Retry-After", "1");
  response.headers.set("x-serin-batch", protocol::print_batch_tag(frontend.host.lone_tag()));
  if (!version.empty()) response.headers.set("x-serin-version", version);
  responder_.send(std::move(response));
}

void HttpInference::start(const std::shared_ptr<HttpInference>& call, Frontend& frontend, Result<std::shared_ptr<Version>> version,
                          std::string_view asked, net::Request&& request) {
  const auto arrived = Clock::now();
  if (!version) return call->refuse(frontend, asked, version.error());
  const bool shadow = request.headers.get("x-serin-shadow") == "1";
  const auto bad = [&](const Error& error, std::string_view field) {
    if (!shadow) (*version)->metrics().refused(error, {}, AskedBy{.http = true, .api = call->api()});
    call->refuse(frontend, (*version)->version(), error, field);
  };
  std::string field;
  auto decoded = call->decode(request, **version, frontend.leftovers().take_request(), field);
  if (!decoded) return bad(decoded.error(), field);
  auto deadline = Clock::time_point::max();
  if (const auto header = request.headers.get(protocol::kTimeHeader); !header.empty()) {
    const auto left = protocol::parse_time_left(header);
    if (!left) return bad(left.error(), protocol::kTimeHeader);
    deadline = arrived + *left;
  }
  const auto inference = Inference::start(frontend,
                                          {.version = std::move(*version),
                                           .request = std::move(*decoded),
                                           .arrived = arrived,
                                           .deadline = deadline,
                                           .shadow = shadow,
                                           .door = Trace::Door::kHttp,
                                           .api = call->api(),
                                           .received = request.received},
                                          [call](const Finished& finished) { call->answer(finished); });
  call->responder_.on_cancel([weak = std::weak_ptr(inference)] {
    if (const auto held = weak.lock()) held->cancel();
  });
}

void HttpInference::answer(const Finished& finished) {
  const auto& outputs = finished.answer.outputs;
  net::Response response = outputs          ? encode(finished, responder_.blank())
                           : finished.taken ? failure(outputs.error())
                                            : refusal(outputs.error(), {});
  if (response.status == 429) response.headers.set("Retry-After", std::to_string(finished.version.retry_after_seconds()));
  response.headers.set("x-serin-batch", protocol::print_batch_tag(finished.answer.batch));
  response.headers.set("x-serin-version", finished.version.version());
  responder_.send(std::move(response));
}

}  // namespace serin::serving
