#include "runtime/serving/apis/grpc/grpc_inference.h"

namespace serin::serving {

Result<Inference::Call> with_request(Inference::Call asked, Result<protocol::InferRequest> decoded) {
  if (!decoded) {
    if (!asked.shadow) asked.version->metrics().refused(decoded.error(), {}, AskedBy{.http = false, .api = asked.api});
    return decoded.error();
  }
  asked.request = std::move(*decoded);
  return asked;
}

Error grpc_call_ended(const net::GrpcCall& call) {
  if (Clock::now() >= call.deadline()) return {Code::kDeadlineExceeded, "the deadline passed before the message was read"};
  return {Code::kCancelled, "the client hung up"};
}

}  // namespace serin::serving
