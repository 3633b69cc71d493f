// load_inputs.cc: two sources of rows (a file, random numbers) and one encoder. Random numbers are small on purpose: floats in [0, 1),
// integers in [0, 10), so that they are valid pixels and token ids alike. The seed is fixed: two runs send the same.

#include "runtime/cli/tools/load_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>

#include "runtime/base/file.h"
#include "runtime/datasets/npz_archive.h"
#include "runtime/protocol/tensor/datatype.h"

namespace serin::cli {
namespace {

using protocol::NamedTensor;
using protocol::TensorSpec;

constexpr int64_t kRandomBodies = 64;
constexpr int64_t kFileBodies = 4096;
constexpr int64_t kBodyElements = int64_t{1} << 26;

/// Memory for one tensor of a body, with the view that the encoder reads.
struct Filled {
  std::vector<std::byte> memory;
  TensorView view;

  Filled(DType dtype, const Shape& shape)
      : memory(static_cast<size_t>(shape.elements()) * dtype_size(dtype)), view{dtype, shape, memory.data()} {}
};

std::shared_ptr<const std::string> encode(const std::vector<TensorSpec>& inputs, const std::vector<Filled>& tensors) {
  std::vector<NamedTensor> named;
  named.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) named.push_back({inputs[i].name, tensors[i].view});
  return std::make_shared<const std::string>(protocol::encode_infer_request(named).bytes);
}

template <class T>
void fill_integers(Filled& tensor, std::mt19937& random, unsigned below) {
  for (T& element : tensor.view.span<T>()) element = static_cast<T>(random() % below);
}
template <class T>
void fill_fractions(Filled& tensor, std::mt19937& random) {
  for (T& element : tensor.view.span<T>()) element = static_cast<T>(random() % 1000) / 1000;
}
/// 16-bit floats in [0.5, 1): all mantissas under one exponent.
void fill_bits(Filled& tensor, std::mt19937& random, uint16_t half, unsigned mantissas) {
  for (uint16_t& element : tensor.view.span<uint16_t>()) element = static_cast<uint16_t>(half + random() % mantissas);
}

void fill(Filled& tensor, std::mt19937& random) {
  switch (tensor.view.dtype) {
    case DType::kBool: return fill_integers<uint8_t>(tensor, random, 2);
    case DType::kInt8: return fill_integers<int8_t>(tensor, random, 10);
    case DType::kInt16: return fill_integers<int16_t>(tensor, random, 10);
    case DType::kInt32: return fill_integers<int32_t>(tensor, random, 10);
    case DType::kInt64: return fill_integers<int64_t>(tensor, random, 10);
    case DType::kUInt8: return fill_integers<uint8_t>(tensor, random, 10);
    case DType::kUInt16: return fill_integers<uint16_t>(tensor, random, 10);
    case DType::kUInt32: return fill_integers<uint32_t>(tensor, random, 10);
    case DType::kUInt64: return fill_integers<uint64_t>(tensor, random, 10);
    case DType::kFloat16: return fill_bits(tensor, random, 0x3800, 0x400);
    case DType::kBFloat16: return fill_bits(tensor, random, 0x3F00, 0x80);
    case DType::kFloat32: return fill_fractions<float>(tensor, random);
    case DType::kFloat64: return fill_fractions<double>(tensor, random);
    default: return;  // refused by parse_model_inputs
  }
}

Result<TensorSpec> parse_input(const boost::json::value& value) {
  const auto* object = value.if_object();
  const auto* name = object ? object->if_contains("name") : nullptr;
  const auto* datatype = object ? object->if_contains("datatype") : nullptr;
  const auto* shape = object ? object->if_contains("shape") : nullptr;
  if (!name || !name->is_string() || !datatype || !datatype->is_string() || !shape || !shape->is_array()) {
    return Error{Code::kCorrupt, "the model's metadata has an input without name, datatype or shape"};
  }
  TensorSpec input;
  input.name = name->get_string();
  const auto dtype = protocol::parse_oip_datatype(std::string_view(datatype->get_string()));
  if (!dtype || *dtype == DType::kString) {
    return Error{Code::kUnsupported, fmt::format("input '{}' is {}: --data FILE names a file to send, or a folder of files", input.name,
                                                 std::string_view(datatype->get_string()))};
  }
  input.dtype = *dtype;
  if (!Shape::fits(shape->get_array().size()))
    return Error{Code::kUnsupported, fmt::format("input '{}' has too many dimensions", input.name)};
  for (const auto& dim : shape->get_array()) {
    if (!dim.is_int64()) return Error{Code::kCorrupt, fmt::format("input '{}': a dimension is not a number", input.name)};
    input.shape.push_back(dim.get_int64());
  }
  return input;
}

/// The model's shape with its open sizes filled in.
Result<Shape> bound_shape(const TensorSpec& input, int64_t batch) {
  Shape shape = input.shape;
  for (size_t axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] < 0) shape[axis] = axis == 0 ? batch : 1;
  if (shape.checked_elements().value_or(kBodyElements + 1) > kBodyElements) {
    return Error{Code::kTooLarge, fmt::format("input '{}' of shape {} is too large to send as JSON", input.name, shape.str())};
  }
  return shape;
}

/// The shape to send rows of an array in: the model's where the sizes agree (64 values as [64] or as [8, 8]), the array's own where not.
Shape row_shape(const TensorSpec& input, const Shape& array, int64_t batch) {
  Shape own = array;
  own[0] = batch;
  Shape models = input.shape;
  if (models.rank() == 0 || models[0] >= 0) return own;
  models[0] = batch;
  return models.checked_elements() == own.elements() ? models : own;
}

}  // namespace

Result<std::vector<TensorSpec>> parse_model_inputs(std::string_view metadata) {
  boost::system::error_code failure;
  const auto document = boost::json::parse(metadata, failure);
  const auto* object = document.if_object();
  const auto* list = failure || !object ? nullptr : object->if_contains("inputs");
  if (!list || !list->is_array() || list->get_array().empty()) return Error{Code::kCorrupt, "the model's metadata names no inputs"};
  std::vector<TensorSpec> inputs;
  for (const auto& value : list->get_array()) {
    SERIN_TRY(TensorSpec input, parse_input(value));
    inputs.push_back(std::move(input));
  }
  return inputs;
}

Result<Bodies> random_bodies(const std::vector<TensorSpec>& inputs, int64_t batch) {
  std::mt19937 random(1);
  int64_t elements = 0;
  std::vector<Filled> tensors;
  for (const TensorSpec& input : inputs) {
    SERIN_TRY(const Shape shape, bound_shape(input, batch));
    elements += shape.elements();
    tensors.emplace_back(input.dtype, shape);
  }
  Bodies bodies;
  const int64_t count = std::clamp<int64_t>(kBodyElements / std::max<int64_t>(elements, 1), 1, kRandomBodies);
  for (int64_t i = 0; i < count; ++i) {
    for (Filled& tensor : tensors) fill(tensor, random);
    bodies.push_back(encode(inputs, tensors));
  }
  return bodies;
}

Result<Bodies> file_bodies(const std::vector<TensorSpec>& inputs, int64_t batch, const std::string& path) {
  SERIN_TRY(const std::shared_ptr<const datasets::StoredFile> file, datasets::StoredFile::open(path));
  SERIN_TRY(const std::vector<datasets::NpzArray> arrays, datasets::find_npz_arrays(file));
  std::vector<std::string> sources;
  std::vector<Filled> tensors;
  int64_t rows = 0;
  for (const TensorSpec& input : inputs) {
    const auto found = std::ranges::find(arrays, input.name, &datasets::NpzArray::name);
    if (found == arrays.end())
      return Error{Code::kInvalidArgument, fmt::format("{}: no array '{}', which is an input of the model", path, input.name)};
    const datasets::NpzArray& array = *found;
    if (array.dtype != input.dtype) {
      return Error{Code::kInvalidArgument, fmt::format("{}: array '{}' is {}, the model takes {}", path, input.name,
                                                       protocol::oip_datatype(array.dtype), protocol::oip_datatype(input.dtype))};
    }
    if (array.shape.rank() == 0 || array.shape.elements() == 0 || (rows != 0 && array.shape[0] != rows)) {
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: array '{}' has shape {}: every input needs the same number of rows, at least one", path, input.name,
                               array.shape.str())};
    }
    rows = array.shape[0];
    SERIN_TRY(sources.emplace_back(), array.file->read(array.offset, array.bytes()));
    tensors.emplace_back(input.dtype, row_shape(input, array.shape, batch));
  }
  Bodies bodies;
  const int64_t count = std::min(rows / std::gcd(rows, batch), kFileBodies);  // after so many the rows begin anew
  for (int64_t body = 0; body < count; ++body) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const size_t row_bytes = sources[i].size() / static_cast<size_t>(rows);
      for (int64_t row = 0; row < batch; ++row) {
        const auto from = static_cast<size_t>((body * batch + row) % rows);
        std::memcpy(tensors[i].memory.data() + static_cast<size_t>(row) * row_bytes, sources[i].data() + from * row_bytes, row_bytes);
      }
    }
    bodies.push_back(encode(inputs, tensors));
  }
  return bodies;
}

bool are_bodies(const std::string& path) { return !path.ends_with(".npz"); }

Result<Bodies> bodies_as_they_are(const std::string& path) {
  constexpr size_t kMostBytes = size_t{1} << 30;
  std::vector<std::string> files;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, error))
      if (entry.is_regular_file(error)) files.push_back(entry.path());
    std::ranges::sort(files);
    if (files.empty()) return invalid(fmt::format("{}: the folder has no files", path));
    files.resize(std::min(files.size(), static_cast<size_t>(kFileBodies)));
  } else {
    files = {path};
  }
  Bodies bodies;
  size_t bytes = 0;
  for (const std::string& file : files) {
    SERIN_TRY(std::string body, read_file(file, kMostBytes - bytes));
    bytes += body.size();
    bodies.push_back(std::make_shared<const std::string>(std::move(body)));
  }
  return bodies;
}

}  // namespace serin::cli
