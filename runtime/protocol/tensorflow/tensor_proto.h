// tensor_proto.h: TensorFlow's TensorProto, read and written where it lies: big ones are copied once.
//
// Its elements come as bytes (tensor_content) or as a list of numbers of their type (float_val ...), which may be shorter than the shape: its last one goes for the
// rest, as TensorFlow's own clients pack constants. Answers have lists, as those of TensorFlow Serving: there are clients that look nowhere else.
// Field numbers: github.com/tensorflow/tensorflow, tensorflow/core/framework/tensor.proto. Internal to runtime/protocol and runtime/serving.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/result.h"
#include "runtime/base/wire.h"

namespace serin::protocol {

/// The number of a type in TensorFlow's DataType; 0 where it has none.
int tf_dtype(DType dtype);
std::optional<DType> parse_tf_dtype(int64_t number);

struct TensorProto {
  int64_t dtype = 0;
  std::vector<int64_t> dims;
  std::optional<wire::Bytes> content;  ///< tensor_content, where it is not empty
  wire::Bytes message;

  /// Mistakes are the decoding's.
  static TensorProto read(wire::Decoding& decoding, wire::Bytes message);
  /// Whether its elements may be what the tensor's shape takes, before memory is taken for it; `name` is for messages.
  Status check(const TensorView& tensor, std::string_view name) const;
  /// Into the tensor's memory. Requires check().
  Status copy_to(const TensorView& tensor, std::string_view name, wire::Decoding& decoding) const;
};

/// What a tensor takes as a TensorProto: known before it is written, so that lengths can stand in front.
class TensorProtoWriter {
 public:
  explicit TensorProtoWriter(const TensorView& tensor);
  size_t bytes() const { return bytes_; }
  void append(std::string& out) const;

 private:
  const TensorView& tensor_;
  std::string head_;  // type and shape
  size_t bytes_ = 0;
};

}  // namespace serin::protocol
