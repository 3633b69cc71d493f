// value_file.cc: reads the messages of onnx-data.proto. Sequences and optionals contain each other; both are read by functions that count
// the depth.

#include "runtime/formats/onnx/value_file.h"

#include <fmt/format.h>

#include "runtime/formats/onnx/tensor.h"

namespace serin::formats {
namespace {

using namespace onnx;

constexpr size_t kFileBytes = size_t{2} << 30;

class ValueReader {
 public:
  explicit ValueReader(FileImage& image) : tensors_(image, "") {}

  Result<FileValue> read(Message in, graph::ValueKind kind, int depth = 0) {
    if (depth > kMaxValueNesting) return Error{Code::kTooLarge, fmt::format("values within values, more than {} deep", kMaxValueNesting)};
    if (kind == graph::ValueKind::kTensor) return read_tensor_value(in);
    if (kind != graph::ValueKind::kSequence) kind = graph::ValueKind::kOptional;  // of whatever
    FileValue value{.kind = kind, .tensor = nullptr, .elements = {}};
    while (in.next()) {
      const auto element = element_of(in.field());
      if (!element) continue;
      if (*element == kNotSupported) return Error{Code::kUnsupported, "contains a map or a sparse tensor"};
      SERIN_TRY(FileValue inner, read(in.message("element"), static_cast<graph::ValueKind>(*element), depth + 1));
      value.elements.push_back(std::move(inner));
    }
    if (kind == graph::ValueKind::kOptional && value.elements.size() > 1) return Error{Code::kCorrupt, "an optional holds several values"};
    return value;
  }

 private:
  static constexpr int kNotSupported = -1;

  /// What field `field` of a SequenceProto or OptionalProto holds; nothing where it is no value (a name, the element type).
  static std::optional<int> element_of(uint32_t field) {
    switch (field) {
      case 3: return static_cast<int>(graph::ValueKind::kTensor);
      case 5: return static_cast<int>(graph::ValueKind::kSequence);
      case 7: return static_cast<int>(graph::ValueKind::kOptional);
      case 4:
      case 6: return kNotSupported;
      default: return std::nullopt;
    }
  }

  Result<FileValue> read_tensor_value(Message in) {
    const TensorProto proto = read_tensor(in);
    if (in.decoding().error) return *in.decoding().error;
    SERIN_TRY(graph::ConstantPtr tensor, tensors_.read(proto));
    return FileValue{.kind = graph::ValueKind::kTensor, .tensor = std::move(tensor), .elements = {}};
  }

  TensorReader tensors_;
};

}  // namespace

Result<FileValue> read_value_file(const std::string& path, graph::ValueKind kind) {
  SERIN_TRY(FileImage image, FileImage::read(path, kFileBytes));
  Decoding decoding{.begin = image.bytes().data(), .error = {}};
  auto value = ValueReader(image).read(Message(decoding, "value", image.bytes()), kind);
  const std::string name = path.substr(path.rfind('/') + 1);
  if (decoding.error) return decoding.error->in(name);
  if (!value) return value.error().in(name);
  return value;
}

}  // namespace serin::formats
