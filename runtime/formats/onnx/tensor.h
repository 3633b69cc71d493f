// tensor.h: the elements of a TensorProto, wherever they are: packed in raw_data, spread over typed fields, or in another file.
#pragma once

#include <map>
#include <string>

#include "runtime/formats/onnx/external_data.h"
#include "runtime/formats/onnx/file_image.h"
#include "runtime/formats/onnx/proto.h"
#include "runtime/graph/graph.h"

namespace serin::formats::onnx {

/// kUnsupported naming the type ("int4", "complex64") where Serin has none for it, kCorrupt where ONNX has none either.
Result<DType> dtype_from(int64_t data_type);

/// Reads the tensors of one model. Each becomes memory of its own, aligned for every kernel, so that a weight can be freed alone once it is
/// packed; the file's pages behind a large one are given back at once, so a tensor can be read only once.
class TensorReader {
 public:
  /// `folder` is where external data may lie; empty: there is none.
  TensorReader(FileImage& image, std::string folder) : image_(image), external_(std::move(folder)) {}

  /// The error does not name the tensor: the caller knows what it is to the model.
  Result<graph::ConstantPtr> read(const TensorProto& tensor);
  /// kUnavailable where a file of external data was written to meanwhile.
  Status finish() const { return external_.unchanged(); }

 private:
  FileImage& image_;
  ExternalData external_;
};

}  // namespace serin::formats::onnx
