// paddle_tensor.h: Paddle's Tensor: types, the lists that their elements come in, and the tensor as protobuf. Internal to runtime/protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/wire.h"
#include "runtime/protocol/infer.h"
#include "runtime/protocol/tensor/request_builder.h"

namespace serin::protocol {

struct PaddleType {
  DType dtype;
  int64_t number;         ///< elem_type
  uint32_t field;         ///< of the list
  std::string_view list;  ///< its name in JSON
};
inline constexpr uint32_t kPaddleContent = 15;  ///< bytes as in memory
/// Null where Paddle has no such type.
const PaddleType* paddle_type(DType dtype);

/// In the signature's words the name of what a client calls so, by name or alias; what it has not comes back as it is.
std::string_view paddle_name(std::span<const TensorSpec> specs, std::string_view called);
/// In the client's: by its alias, where it has one.
inline std::string_view paddle_alias(const NamedTensor& named) { return named.alias.empty() ? named.name : named.alias; }

/// What a request says of a tensor before its elements.
struct PaddleTensor {
  std::string_view name, alias;
  std::optional<int64_t> type;
  std::vector<int64_t> dims;
};
/// Its place in the signature, with its type and shape taken. `position`: among the tensors of the request, for one without a name.
Result<size_t> begin_paddle_tensor(const PaddleTensor& tensor, size_t position, const Signature& signature, RequestBuilder& builder);
/// Whether there is a type for each output that is wanted.
Status check_paddle_outputs(const InferRequest& request, const Signature& signature);

/// All of a Request as protobuf.
Result<InferRequest> decode_paddle_proto(std::string_view body, const Signature& signature, const RequestLimits& limits, uint64_t& log_id);
std::string encode_paddle_proto(std::string_view model, std::span<const NamedTensor> outputs, uint64_t log_id);

}  // namespace serin::protocol
