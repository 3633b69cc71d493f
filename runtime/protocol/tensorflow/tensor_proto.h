// tensor_proto.h: reads and writes TensorFlow's TensorProto in place: large ones are copied once.
//
// Elements are bytes (tensor_content) or a list of numbers of their type (float_val ...). The list may be shorter than the shape: its last
// number then fills the rest, as TensorFlow's own clients encode constants. Answers have lists, as those of TensorFlow Serving, because
// some clients read nothing else. Field numbers: github.com/tensorflow/tensorflow, tensorflow/core/framework/tensor.proto.
//
// Internal to runtime/protocol and runtime/serving.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/result.h"
#include "runtime/base/wire.h"

namespace serin::protocol {

/// The number of a type in TensorFlow's DataType; 0 if it has none.
int tf_dtype(DType dtype);
std::optional<DType> parse_tf_dtype(int64_t number);

struct TensorProto {
  int64_t dtype = 0;
  std::vector<int64_t> dims;
  std::optional<wire::Bytes> content;  ///< tensor_content, if it is not empty
  wire::Bytes message;

  /// Errors go to `decoding`.
  static TensorProto read(wire::Decoding& decoding, wire::Bytes message);
  /// Checks that the elements can fill the tensor's shape, before memory is allocated; `name` is for messages.
  Status check(const TensorView& tensor, std::string_view name) const;
  /// Copies into the tensor's memory. Requires check().
  Status copy_to(const TensorView& tensor, std::string_view name, wire::Decoding& decoding) const;
};

/// Computes the size of a tensor as a TensorProto before it is written, so that lengths can precede it.
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
