// recorded_codecs.cc: the paths are those that the APIs of runtime/serving have, and the codecs are the same.

#include "runtime/cli/tools/recorded_codecs.h"

#include <fmt/format.h>

#include "runtime/base/number.h"
#include "runtime/net/content_coding.h"
#include "runtime/net/grpc.h"
#include "runtime/protocol/oip/generate.h"
#include "runtime/protocol/oip/oip_grpc.h"
#include "runtime/protocol/oip/oip_rest.h"
#include "runtime/protocol/paddle/paddle.h"
#include "runtime/protocol/tensorflow/tfserving_grpc.h"
#include "runtime/protocol/tensorflow/tfserving_rest.h"

namespace serin::cli {
namespace {

using protocol::InferRequest;
using protocol::PaddleForm;
using protocol::Signature;
using protocol::TfMethod;

constexpr size_t kMostUnpacked = size_t{256} << 20;

Result<std::string> unpacked(std::string_view bytes, std::string_view coding) {
  if (coding.empty() || coding == "identity") return std::string(bytes);
  const auto known = net::parse_coding(coding);
  if (!known) return Error{Code::kUnsupported, fmt::format("its body has the coding '{}'; known are {}", coding, net::kCodings)};
  auto plain = net::unpack(*known, bytes, kMostUnpacked);
  return plain ? plain : plain.error().in("its body");
}

/// The only message of a call.
Result<std::string> message_of(std::string_view body, std::string_view coding) {
  const auto prefix = body.size() < net::GrpcPrefix::kBytes ? std::nullopt : net::read_grpc_prefix(body);
  if (!prefix || prefix->length != body.size() - net::GrpcPrefix::kBytes)
    return Error{Code::kCorrupt, "its body is not one message of gRPC"};
  return unpacked(body.substr(net::GrpcPrefix::kBytes), prefix->compressed ? coding : "");
}

/// A router records no other method with tensors: it does not know how many messages they have.
Result<InferRequest> decode_call(std::string_view method, std::string_view message, const Signature& signature) {
  constexpr std::string_view kPredictions = "/tensorflow.serving.PredictionService/";
  if (method == "/inference.GRPCInferenceService/ModelInfer") {
    SERIN_TRY(const auto call, protocol::GrpcInferRequest::read(message));
    return call.decode(signature);
  }
  const std::string_view verb = method.starts_with(kPredictions) ? method.substr(kPredictions.size()) : std::string_view();
  if (verb == "Predict") {
    SERIN_TRY(const auto call, protocol::TfPredictCall::read(message));
    return call.decode(signature);
  }
  if (verb != "Classify" && verb != "Regress")
    return Error{Code::kUnsupported, fmt::format("the method {} has no tensors that are read here", method)};
  SERIN_TRY(const auto call, protocol::TfExamplesCall::read(message, verb == "Classify" ? TfMethod::kClassify : TfMethod::kRegress));
  return call.decode(signature);
}

/// As OipInference::decode() does.
Result<InferRequest> decode_oip(std::string body, const net::Head& head, const Signature& signature, std::string& field) {
  const std::string_view length = head.headers.get(protocol::kJsonLength);
  if (length.empty() && protocol::is_lone_element(body, signature)) return protocol::decode_lone_element(body, signature);
  protocol::OipBody whole{std::move(body), {}};
  if (!length.empty()) {
    whole.json_bytes = parse_number<size_t>(length);
    if (!whole.json_bytes) return invalid(fmt::format("header {} must be a number of bytes", protocol::kJsonLength));
  }
  return protocol::decode_infer_request(std::move(whole), signature, &field);
}

Result<InferRequest> decode_tensorflow(std::string body, std::string_view verb, const Signature& signature, std::string& field) {
  if (net::equal_ignoring_case(verb, ":predict")) {
    SERIN_TRY(protocol::TfPredict decoded, protocol::decode_tf_predict(std::move(body), signature, &field));
    return std::move(decoded.infer);
  }
  const TfMethod method = net::equal_ignoring_case(verb, ":classify") ? TfMethod::kClassify : TfMethod::kRegress;
  return protocol::decode_tf_examples(std::move(body), method, signature, &field);
}

Result<InferRequest> decode_rest(std::string body, const net::Head& head, const router::Target& target, const Signature& signature,
                                 std::string& field) {
  if (target.model && head.path[2] == '1') return decode_tensorflow(std::move(body), target.rest, signature, field);  // "/v1/models/"
  if (target.model)
    return target.rest == "/generate" ? protocol::decode_generate_request(body, signature, &field)
                                      : decode_oip(std::move(body), head, signature, field);
  const bool is_server = head.path.starts_with("/GeneralModelService/");
  if (!is_server && target.rest != "/prediction")
    return Error{Code::kUnsupported, fmt::format("{} {} is of no protocol that is read here", head.method, head.path)};
  const bool proto = head.headers.get("content-type").starts_with("application/proto");
  const PaddleForm form = !is_server ? PaddleForm::kPipeline : proto ? PaddleForm::kProto : PaddleForm::kJson;
  SERIN_TRY(protocol::PaddleRequest decoded, protocol::decode_paddle(form, std::move(body), signature, &field));
  return std::move(decoded.infer);
}

}  // namespace

Result<InferRequest> decode_recorded(const router::RecordedRequest& request, const net::Head& head, const router::Target& target,
                                     const Signature& signature) {
  if (target.grpc) {
    SERIN_TRY(const std::string message, message_of(request.body, head.headers.get("grpc-encoding")));
    return decode_call(head.path, message, signature);
  }
  SERIN_TRY(std::string body, unpacked(request.body, head.headers.get("content-encoding")));
  std::string field;
  auto decoded = decode_rest(std::move(body), head, target, signature, field);
  if (!decoded && !field.empty()) return decoded.error().in(field);
  return decoded;
}

}  // namespace serin::cli
