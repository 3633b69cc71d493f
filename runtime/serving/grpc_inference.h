// grpc_inference.h: one inference that came over gRPC, the same for every service: what is asked of which version, and the one answer of a unary call.
#pragma once

#include <memory>
#include <utility>

#include "runtime/serving/grpc_api.h"
#include "runtime/serving/inference.h"

namespace serin::serving {

/// decode(signature, memory) -> Result<protocol::InferRequest>. A request that gets no further is counted against its model.
template <class Decode>
Result<Inference::Call> grpc_inference_call(Frontend& frontend, const net::GrpcCall& call, Result<std::shared_ptr<Version>> version,
                                            const Decode& decode, TfApi api = TfApi::kInfer) {
  const auto arrived = Clock::now();
  if (!version) return version.error();
  const bool shadow = call.headers().get("x-serin-shadow") == "1";
  auto decoded = decode((*version)->signature(), frontend.leftovers().take_request());
  if (!decoded) {
    if (!shadow) (*version)->metrics().refused(decoded.error(), {}, AskedBy{.http = false, .api = api});
    return decoded.error();
  }
  return Inference::Call{.version = std::move(*version),
                         .request = std::move(*decoded),
                         .arrived = arrived,
                         .deadline = call.deadline(),
                         .shadow = shadow,
                         .door = Trace::Door::kGrpc,
                         .api = api,
                         .received = net::loop_time()};
}

/// append(out, finished) -> Status writes the message once the outputs are there.
template <class Append>
void start_grpc_inference(Frontend& frontend, const std::shared_ptr<net::GrpcCall>& call, Result<Inference::Call> asked, Append append) {
  if (!asked) {
    call->set_header("x-serin-batch", protocol::print_batch_tag(frontend.host.lone_tag()));
    return finish_with(*call, asked.error());
  }
  const auto inference = Inference::start(frontend, std::move(*asked), [call, append = std::move(append)](const Finished& finished) {
    call->set_header("x-serin-batch", protocol::print_batch_tag(finished.answer.batch));
    call->set_header("x-serin-version", finished.version.version());
    if (!finished.answer.outputs) return finish_with(*call, finished.answer.outputs.error());
    std::string framed = call->begin_message();
    if (const Status appended = append(framed, finished); !appended) return finish_with(*call, appended.error());
    net::seal_grpc_message(framed);
    call->send(std::move(framed));
    call->finish(net::GrpcStatus::kOk);
  });
  if (!call->ended()) call->on_gone = [inference] { inference->cancel(); };
}

}  // namespace serin::serving
