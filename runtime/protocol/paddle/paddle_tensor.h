// paddle_tensor.h: Paddle's Tensor: its types, the lists of its elements, and its protobuf form. Internal to runtime/protocol.
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
  uint32_t field;         ///< field number of the list
  std::string_view list;  ///< name of the list in JSON
};
inline constexpr uint32_t kPaddleContent = 15;  ///< bytes as in memory
/// Null if Paddle has no such type.
const PaddleType* paddle_type(DType dtype);

/// Translates a client's name or alias to the signature's name; an unknown name is returned unchanged.
std::string_view paddle_name(std::span<const TensorSpec> specs, std::string_view called);
/// Translates back to the client's name: the alias, if there is one.
inline std::string_view paddle_alias(const NamedTensor& named) { return named.alias.empty() ? named.name : named.alias; }

/// The description of a tensor before its elements.
struct PaddleTensor {
  std::string_view name, alias;
  std::optional<int64_t> type;
  std::vector<int64_t> dims;
};
/// Returns its index in the signature, and sets its type and shape. `position`: its index in the request, for a tensor without a name.
Result<size_t> begin_paddle_tensor(const PaddleTensor& tensor, size_t position, const Signature& signature, RequestBuilder& builder);
/// Checks that Paddle has a type for each requested output.
Status check_paddle_outputs(const InferRequest& request, const Signature& signature);

/// Decodes a whole Request in protobuf.
Result<InferRequest> decode_paddle_proto(std::string_view body, const Signature& signature, const RequestLimits& limits, uint64_t& log_id);
std::string encode_paddle_proto(std::string_view model, std::span<const NamedTensor> outputs, uint64_t log_id);

}  // namespace serin::protocol
