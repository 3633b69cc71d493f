// tensor.h: the elements of a TensorProto, wherever they are: packed in raw_data, spread over typed fields, or in another file.
#pragma once

#include <map>
#include <string>

#include "runtime/formats/onnx/external_data.h"
#include "runtime/formats/onnx/file_image.h"
#include "runtime/formats/onnx/proto.h"
#include "runtime/graph/graph.h"

namespace serin::formats::onnx {

/// kUnsupported naming the type ("complex64") where Serin has none for it, kCorrupt where ONNX has none either.
Result<DType> dtype_from(int64_t data_type);
Result<DType> dtype_named(std::string_view name);  ///< "FLOAT": as the oldest models say it

/// kUnsupported: more dimensions than Serin has; kCorrupt: a negative one, or more elements than 64 bits can count.
Result<Shape> shape_from(const std::vector<int64_t>& dims);

/// Reads the tensors of one model. A large one that lies in a file as it is stays there until somebody wants its elements (graph/constant.h).
/// Every other becomes memory of its own, aligned for every kernel; the image's pages behind it are given back at once, so a tensor can be
/// read only once.
class TensorReader {
 public:
  /// `folder` is where external data may lie; empty: there is none.
  TensorReader(FileImage& image, std::string folder, size_t sparse_limit = SIZE_MAX)
      : image_(image), external_(std::move(folder)), sparse_limit_(sparse_limit) {}

  /// The error does not name the tensor: the caller knows what it is to the model.
  Result<graph::ConstantPtr> read(const TensorProto& tensor);
  /// One that may be read again, because it is in a function: the same constant each time.
  Result<graph::ConstantPtr> read_shared(const TensorProto& tensor);
  /// Dense (sparse_tensor.cc). kTooLarge where all that the model's sparse tensors unfold to is more than the limit.
  Result<graph::ConstantPtr> read(const SparseTensorProto& tensor);
  /// kUnavailable where the model's file or one of external data was written to meanwhile.
  Status finish() const {
    SERIN_CHECK(image_.unchanged());
    return external_.unchanged();
  }

 private:
  FileImage& image_;
  ExternalData external_;
  std::map<const TensorProto*, graph::ConstantPtr> shared_;
  size_t sparse_limit_, sparse_bytes_ = 0;  ///< of what was unfolded
};

}  // namespace serin::formats::onnx
