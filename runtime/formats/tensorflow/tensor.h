// tensor.h: dtypes, and the tensors inside saved_model.pb.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "runtime/formats/input_file.h"
#include "runtime/formats/tensorflow/proto.h"
#include "runtime/graph/constant.h"

namespace serin::formats::tf {

/// TensorFlow's number of a dtype; nothing for complex, quantised and other types that are not supported. References (101 and up) count as
/// the type itself.
std::optional<DType> dtype_of(int64_t number);
inline constexpr int64_t kResource = 20, kVariant = 21;

/// The shape, if every dimension is a size and the elements of `dtype` can be counted.
Result<Shape> static_shape(const std::vector<int64_t>& dims, DType dtype);

/// A TensorProto. `file` begins at `begin`: large elements stay in it, and the constant is a recipe. Without a file all are copied.
Result<graph::ConstantPtr> read_tensor(Bytes proto, const std::shared_ptr<const InputFile>& file, const std::byte* begin);

}  // namespace serin::formats::tf
