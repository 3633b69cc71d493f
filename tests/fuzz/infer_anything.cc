#include "tests/fuzz/infer_anything.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/protocol/oip/generate.h"
#include "runtime/protocol/oip/oip_grpc.h"
#include "runtime/protocol/oip/oip_rest.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/signatures.h"

namespace serin::fuzz {
namespace {

using protocol::InferRequest;
using protocol::NamedTensor;
using protocol::Signature;

const Signature kModel = every_type("t", {{"y", DType::kFloat32, {-1, 2}}, {"z", DType::kString, {-1}}});
const Signature kOne = one_input();

bool finite(double value) { return std::isfinite(value); }

/// Whether JSON has words for all of it: it has none for what is not finite, nor for texts that are not UTF-8.
bool printable(const TensorView& tensor) {
  const auto all = [&]<class T>(T) {
    for (const T value : tensor.span<const T>())
      if (!finite(static_cast<double>(value))) return false;
    return true;
  };
  if (tensor.dtype == DType::kFloat32) return all(float{});
  if (tensor.dtype == DType::kFloat64) return all(double{});
  return tensor.dtype != DType::kString && tensor.dtype != DType::kFloat16 && tensor.dtype != DType::kBFloat16;
}

void check(const InferRequest& request, const Signature& signature) {
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    must(request.inputs[i].dtype == signature.inputs[i].dtype && request.inputs[i].elements() >= 0, "an input is what the model takes");
    named.push_back({signature.inputs[i].name, request.inputs[i], /*binary=*/true});
  }
  protocol::encode_infer_response({"m", "1", request.id, named});
  std::string grpc;
  protocol::append_grpc_response(grpc, {"m", "1", request.id, named});
  must(grpc.size() <= protocol::grpc_response_bytes({"m", "1", request.id, named}), "an answer is no longer than was said");

  const auto same = [&] {
    const auto again = protocol::decode_infer_request(protocol::encode_infer_request(named), signature, nullptr);
    must(again.has_value(), "what is sent on is accepted");
    for (size_t i = 0; i < named.size(); ++i) {
      must(again->inputs[i].shape == request.inputs[i].shape, "and has its shape");
      must(std::memcmp(again->inputs[i].data, request.inputs[i].data, request.inputs[i].bytes()) == 0, "and its bits");
    }
  };
  same();
  for (NamedTensor& tensor : named) tensor.binary = !printable(tensor.tensor);
  same();
}

void rest(std::string_view bytes, std::optional<size_t> json_bytes, const Signature& signature) {
  std::string field;
  const auto request = protocol::decode_infer_request({std::string(bytes), json_bytes}, signature, &field);
  if (request)
    check(*request, signature);
  else
    must(!request.error().message.empty(), "an error says why");
}

/// What was read, written as an answer, is the same request: shapes follow from how many values there are.
void generate(std::string_view bytes, const Signature& signature) {
  std::string body(bytes), field;
  const auto request = protocol::decode_generate_request(body, signature, &field);
  if (!request) return must(!request.error().message.empty(), "an error says why");
  check(*request, signature);
  std::vector<NamedTensor> named;
  named.reserve(request->inputs.size());
  for (size_t i = 0; i < request->inputs.size(); ++i) named.push_back({signature.inputs[i].name, request->inputs[i]});
  std::string answer = protocol::encode_generate_response({"m", "1", request->id, named});
  const auto again = protocol::decode_generate_request(answer, signature, nullptr);
  must(again.has_value(), "an answer is a request");
  must(again->id == request->id, "and has its id");
  for (size_t i = 0; i < named.size(); ++i) {
    const TensorView &a = request->inputs[i], &b = again->inputs[i];
    must(a.shape == b.shape, "and its shapes");
    const auto texts = [](const TensorView& tensor) { return tensor.span<const std::string>(); };
    if (a.dtype == DType::kString)
      must(std::ranges::equal(texts(a), texts(b)), "and its texts");
    else if (printable(a))
      must(std::memcmp(a.data, b.data, a.bytes()) == 0, "and its bits");
  }
}

void grpc(std::string_view bytes) {
  const auto message = protocol::GrpcInferRequest::read(bytes);
  if (!message) return;
  for (const Signature* signature : {&kModel, &kOne})
    if (const auto request = message->decode(*signature)) check(*request, *signature);
}

}  // namespace

void infer_anything(std::string_view input) {
  if (input.empty()) return;
  const char kind = input.front();
  input.remove_prefix(1);
  if (kind == 'r') return rest(input, 0, kOne);
  if (kind == 'g') return grpc(input);
  if (kind == 'n') {
    generate(input, kModel);
    return generate(input, kOne);
  }
  std::optional<size_t> json_bytes;
  if (kind == 'b' && input.size() >= 2) {
    json_bytes = static_cast<size_t>(static_cast<unsigned char>(input[0])) << 8 | static_cast<unsigned char>(input[1]);
    input.remove_prefix(2);
  }
  rest(input, json_bytes, kModel);
  rest(input, json_bytes, kOne);
}

}  // namespace serin::fuzz
