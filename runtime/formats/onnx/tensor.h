// tensor.h: reads the elements of a TensorProto from raw_data, from typed fields or from another file.
#pragma once

#include <map>
#include <string>

#include "runtime/formats/onnx/external_data.h"
#include "runtime/formats/onnx/file_image.h"
#include "runtime/formats/onnx/proto.h"
#include "runtime/graph/graph.h"

namespace serin::formats::onnx {

/// kUnsupported, naming the type ("complex64"), if Serin lacks it; kCorrupt if ONNX lacks it too.
Result<DType> dtype_from(int64_t data_type);
Result<DType> dtype_named(std::string_view name);  ///< "FLOAT": the spelling of the oldest models

/// kUnsupported: more dimensions than Serin supports; kCorrupt: a negative one, or more elements than 64 bits can count.
Result<Shape> shape_from(const std::vector<int64_t>& dims);

/// Reads the tensors of one model. A large tensor that is stored contiguously in a file stays there until its elements are needed
/// (graph/constant.h). Every other gets its own memory, aligned for every kernel. The image's pages behind it are released at once, so a
/// tensor can be read only once.
class TensorReader {
 public:
  /// `folder` may contain external data; empty: none is allowed.
  TensorReader(FileImage& image, std::string folder, size_t sparse_limit = SIZE_MAX)
      : image_(image), external_(std::move(folder)), sparse_limit_(sparse_limit) {}

  /// The error does not name the tensor: the caller knows its role in the model.
  Result<graph::ConstantPtr> read(const TensorProto& tensor);
  /// For a tensor in a function, which may be read again: returns the same constant each time.
  Result<graph::ConstantPtr> read_shared(const TensorProto& tensor);
  /// Converts to a dense tensor (sparse_tensor.cc). kTooLarge if the model's sparse tensors together exceed the limit in dense form.
  Result<graph::ConstantPtr> read(const SparseTensorProto& tensor);
  /// kUnavailable if the model's file or a file of external data was written to meanwhile.
  Status finish() const {
    SERIN_CHECK(image_.unchanged());
    return external_.unchanged();
  }

 private:
  FileImage& image_;
  ExternalData external_;
  std::map<const TensorProto*, graph::ConstantPtr> shared_;
  size_t sparse_limit_, sparse_bytes_ = 0;  ///< dense bytes so far
};

}  // namespace serin::formats::onnx
