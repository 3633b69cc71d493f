#include "tests/fuzz/doors_anything.h"

#include <cstring>

#include "kernels/float16.h"
#include "runtime/base/wire_writer.h"
#include "runtime/protocol/paddle/paddle.h"
#include "runtime/protocol/tensorflow/tensor_proto.h"
#include "runtime/protocol/tensorflow/tfserving_grpc.h"
#include "runtime/protocol/tensorflow/tfserving_rest.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/signatures.h"

namespace serin::fuzz {
namespace {

using protocol::InferRequest;
using protocol::NamedTensor;
using protocol::PaddleForm;
using protocol::Signature;
using protocol::TfMethod;

/// Outputs that classify and regress can mean.
const Signature kModel = every_type(
    "t_bytes", {{"scores", DType::kFloat32, {-1, 2}}, {"outputs", DType::kFloat64, {-1, 1}}, {"classes", DType::kString, {-1, 2}}});
const Signature kOne = one_input();
const Signature kPaddle = {"model 'p' version 1",
                           {{"f", DType::kFloat32, {-1, 2}},
                            {"i", DType::kInt8, {-1}},
                            {"q", DType::kInt64, {-1}},
                            {"t", DType::kString, {-1}},
                            {"o", DType::kBool, {}, false}},
                           {{"y", DType::kFloat32, {-1}}}};

/// Two NaN are the same, whatever bits they have: JSON has one word for all.
template <class T>
bool same_numbers(const TensorView& a, const TensorView& b) {
  for (int64_t i = 0; i < a.elements(); ++i) {
    const T x = a.as<const T>()[i], y = b.as<const T>()[i];
    if (std::memcmp(&x, &y, sizeof x) == 0) continue;
    if constexpr (std::is_class_v<T>) {
      if (!(kernels::to_float(x) != kernels::to_float(x) && kernels::to_float(y) != kernels::to_float(y))) return false;
    } else if (x == x || y == y) {
      return false;
    }
  }
  return true;
}

bool same(const TensorView& a, const TensorView& b) {
  if (a.shape != b.shape || a.dtype != b.dtype) return false;
  switch (a.dtype) {
    case DType::kFloat32: return same_numbers<float>(a, b);
    case DType::kFloat64: return same_numbers<double>(a, b);
    case DType::kFloat16: return same_numbers<kernels::Half>(a, b);
    case DType::kBFloat16: return same_numbers<kernels::BFloat16>(a, b);
    case DType::kString: return std::equal(a.as<std::string>(), a.as<std::string>() + a.elements(), b.as<std::string>());
    default: return std::memcmp(a.data, b.data, a.bytes()) == 0;
  }
}

void require_same(const InferRequest& request, const Result<InferRequest>& again) {
  must(again.has_value(), "what is sent on is accepted");
  for (size_t i = 0; i < request.inputs.size(); ++i) must(same(request.inputs[i], again->inputs[i]), "and is the same");
}

std::vector<NamedTensor> named_inputs(const InferRequest& request, const Signature& signature) {
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    must(request.inputs[i].dtype == signature.inputs[i].dtype && request.inputs[i].elements() >= 0, "an input is what the model takes");
    named.push_back({signature.inputs[i].name, request.inputs[i]});
  }
  return named;
}

std::string predict_request(const std::vector<NamedTensor>& inputs) {
  std::string out;
  for (const NamedTensor& named : inputs) {
    const protocol::TensorProtoWriter writer(named.tensor);
    std::string entry, tensor;
    writer.append(tensor);
    must(tensor.size() == writer.bytes(), "a tensor is as long as was said");
    wire::write_bytes(entry, 1, named.name);
    wire::write_bytes(entry, 2, tensor);
    wire::write_bytes(out, 2, entry);
  }
  return out;
}

/// Sent on as columns of JSON and as gRPC it must be the same request.
void check(const InferRequest& request, const Signature& signature) {
  const auto inputs = named_inputs(request, signature);
  auto columns = protocol::encode_tf_predict("inputs", inputs, /*rows=*/false);
  must(columns.has_value(), "what was read can be written");
  auto read = protocol::decode_tf_predict(std::move(*columns), signature, nullptr);
  require_same(request, read ? Result<InferRequest>(std::move(read->infer)) : read.error());
  const std::string message = predict_request(inputs);
  const auto call = protocol::TfPredictCall::read(message);
  must(call.has_value(), "a call that is sent on is accepted");
  require_same(request, call->decode(signature));
  std::string answer;
  protocol::append_tf_response(answer, "m", 1, "", inputs);
}

template <class Request>
void checked(const Result<Request>& request, const Signature& signature) {
  if (!request) return must(!request.error().message.empty(), "an error says why");
  if constexpr (std::is_same_v<Request, InferRequest>)
    check(*request, signature);
  else
    check(request->infer, signature);
}

void json(std::string_view text, TfMethod method) {
  for (const Signature* signature : {&kModel, &kOne}) {
    std::string field;
    if (method == TfMethod::kPredict)
      checked(protocol::decode_tf_predict(std::string(text), *signature, &field), *signature);
    else
      checked(protocol::decode_tf_examples(std::string(text), method, *signature, &field), *signature);
  }
}

void examples(std::string_view message, TfMethod method) {
  const auto call = protocol::TfExamplesCall::read(message, method);
  if (!call) return;
  for (const Signature* signature : {&kModel, &kOne}) checked(call->decode(*signature), *signature);
}

void paddle(std::string_view body, PaddleForm form) {
  std::string field;
  const auto request = protocol::decode_paddle(form, std::string(body), kPaddle, &field);
  if (!request) {
    protocol::encode_paddle_error(form, request.error().message);
    return must(!request.error().message.empty(), "an error says why");
  }
  const auto inputs = named_inputs(request->infer, kPaddle);
  std::string answer = protocol::encode_paddle(PaddleForm::kProto, "p", inputs, request->log_id);
  const auto again = [&] {  // an answer's tensors stand where a request's do, one level deeper
    wire::Decoding decoding{.begin = reinterpret_cast<const std::byte*>(answer.data())};
    wire::Message in(decoding, "Response", std::as_bytes(std::span(answer)));
    while (in.next())
      if (in.field() == 1) return std::string(in.chars());
    return std::string();
  }();
  std::string sent;
  wire::Decoding decoding{.begin = reinterpret_cast<const std::byte*>(again.data())};
  wire::Message in(decoding, "ModelOutput", std::as_bytes(std::span(again)));
  while (in.next())
    if (in.field() == 1) wire::write_bytes(sent, 1, in.chars());
  must(!decoding.error, "an answer is a message");
  const auto read = protocol::decode_paddle(PaddleForm::kProto, std::move(sent), kPaddle, nullptr);
  must(read.has_value(), "what is sent on is accepted");
  for (size_t i = 0; i < inputs.size(); ++i) must(same(inputs[i].tensor, read->infer.inputs[i]), "and is the same");
  protocol::encode_paddle(form, "p", inputs, request->log_id);
}

}  // namespace

void doors_anything(std::string_view input) {
  if (input.empty()) return;
  const char kind = input.front();
  input.remove_prefix(1);
  switch (kind) {
    case 'p': return json(input, TfMethod::kPredict);
    case 'c': return json(input, TfMethod::kClassify);
    case 'r': return json(input, TfMethod::kRegress);
    case 'C': return examples(input, TfMethod::kClassify);
    case 'R': return examples(input, TfMethod::kRegress);
    case 'M': return examples(input, TfMethod::kPredict);
    case 'j': return paddle(input, PaddleForm::kJson);
    case 'b': return paddle(input, PaddleForm::kProto);
    case 't': return paddle(input, PaddleForm::kPipeline);
    default: break;
  }
  const auto call = protocol::TfPredictCall::read(input);
  if (!call) return;
  for (const Signature* signature : {&kModel, &kOne}) checked(call->decode(*signature), *signature);
}

}  // namespace serin::fuzz
