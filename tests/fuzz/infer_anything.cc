#include "tests/fuzz/infer_anything.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "runtime/protocol/oip_grpc.h"
#include "runtime/protocol/oip_rest.h"

namespace serin::fuzz {
namespace {

using protocol::InferRequest;
using protocol::NamedTensor;
using protocol::Signature;

/// Every type that the protocol has a word for.
const Signature kModel = {"model 'm' version 1",
                          {{"f", DType::kFloat32, {-1, 2}},
                           {"d", DType::kFloat64, {-1}},
                           {"h", DType::kFloat16, {-1}},
                           {"b", DType::kBFloat16, {-1}},
                           {"i", DType::kInt8, {-1}},
                           {"u", DType::kUInt64, {-1}},
                           {"t", DType::kString, {-1}},
                           {"o", DType::kBool, {}, false}},
                          {{"y", DType::kFloat32, {-1, 2}}, {"z", DType::kString, {-1}}}};
const Signature kOne = {"model 'one' version 1", {{"f", DType::kFloat32, {-1, 2, -1}}}, {{"y", DType::kFloat32, {-1}}}};

void require(bool holds) {
  if (!holds) std::abort();
}

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
    require(request.inputs[i].dtype == signature.inputs[i].dtype && request.inputs[i].elements() > 0);
    named.push_back({signature.inputs[i].name, request.inputs[i], /*binary=*/true});
  }
  protocol::encode_infer_response({"m", "1", request.id, named});
  std::string grpc;
  protocol::append_grpc_response(grpc, {"m", "1", request.id, named});
  require(grpc.size() <= protocol::grpc_response_bytes({"m", "1", request.id, named}));

  const auto same = [&] {
    const auto again = protocol::decode_infer_request(protocol::encode_infer_request(named), signature, nullptr);
    require(again.has_value());
    for (size_t i = 0; i < named.size(); ++i) {
      require(again->inputs[i].shape == request.inputs[i].shape);
      require(std::memcmp(again->inputs[i].data, request.inputs[i].data, request.inputs[i].bytes()) == 0);
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
    require(!request.error().message.empty());
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
  std::optional<size_t> json_bytes;
  if (kind == 'b' && input.size() >= 2) {
    json_bytes = static_cast<size_t>(static_cast<unsigned char>(input[0])) << 8 | static_cast<unsigned char>(input[1]);
    input.remove_prefix(2);
  }
  rest(input, json_bytes, kModel);
  rest(input, json_bytes, kOne);
}

}  // namespace serin::fuzz
