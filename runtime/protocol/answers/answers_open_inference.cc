// answers_open_inference.cc: {"name": .., "datatype": .., "shape": [..], "data": [..]}, or {.., "parameters": {"binary_data_size": N}} and N bytes
// behind the JSON. Keys come in any order; where name and shape come first, as servers write them, only the numbers of the wanted row are read.

#include <cmath>
#include <cstring>

#include "kernels/float16.h"
#include "runtime/protocol/answers/answer_state.h"
#include "runtime/protocol/answers/digest.h"
#include "runtime/protocol/tensor/datatype.h"
#include "runtime/protocol/tensor/raw_tensor.h"

namespace serin::protocol {
namespace {

namespace ondemand = simdjson::ondemand;

double to_double(kernels::Half x) { return kernels::to_float(x); }
double to_double(kernels::BFloat16 x) { return kernels::to_float(x); }
template <class T>
double to_double(T x) {
  return static_cast<double>(x);
}

/// Appends the elements of `kept`; false where one of all is not finite.
template <class T>
bool read_elements(std::string_view bytes, Range kept, std::vector<double>& values) {
  const size_t size = bytes.size() / sizeof(T);
  const auto at = [&](size_t index) {
    T element;
    std::memcpy(&element, bytes.data() + index * sizeof(T), sizeof element);
    return to_double(element);
  };
  if constexpr (!std::is_integral_v<T>) {
    bool finite = true;
    for (size_t i = 0; i < size; ++i) finite &= std::isfinite(at(i));
    if (!finite) return false;
  }
  for (size_t i = kept.first; i < kept.last; ++i) values.push_back(at(i));
  return true;
}

bool read_elements(DType dtype, std::string_view bytes, Range kept, std::vector<double>& values) {
  switch (dtype) {
    case DType::kFloat32: return read_elements<float>(bytes, kept, values);
    case DType::kFloat64: return read_elements<double>(bytes, kept, values);
    case DType::kFloat16: return read_elements<kernels::Half>(bytes, kept, values);
    case DType::kBFloat16: return read_elements<kernels::BFloat16>(bytes, kept, values);
    case DType::kInt8: return read_elements<int8_t>(bytes, kept, values);
    case DType::kInt16: return read_elements<int16_t>(bytes, kept, values);
    case DType::kInt32: return read_elements<int32_t>(bytes, kept, values);
    case DType::kInt64: return read_elements<int64_t>(bytes, kept, values);
    case DType::kUInt8: return read_elements<uint8_t>(bytes, kept, values);
    case DType::kUInt16: return read_elements<uint16_t>(bytes, kept, values);
    case DType::kUInt32: return read_elements<uint32_t>(bytes, kept, values);
    case DType::kUInt64: return read_elements<uint64_t>(bytes, kept, values);
    case DType::kBool: return read_elements<uint8_t>(bytes, kept, values);
    default: return true;
  }
}

/// {"binary_data_size": 8}
bool read_parameters(ondemand::value& value, std::optional<uint64_t>& binary_bytes) {
  ondemand::object parameters;
  ondemand::value size;
  if (value.get_object().get(parameters)) return false;
  return parameters["binary_data_size"].get(size) || !size.get(binary_bytes.emplace());
}

}  // namespace

/// What an element of the list `outputs` has said of itself so far.
struct AnswerReader::State::Parts {
  AnswerOutput output;
  bool named = false, shaped = false;
  std::string_view datatype;
  enum class Data : uint8_t { kMissing, kListed, kSteppedOver } data = Data::kMissing;
  Shape lists;  // of the data, as it is nested
  size_t elements = 0;
  std::optional<uint64_t> binary_bytes;
};

bool AnswerReader::State::read_output(Object& object) {
  Parts parts;
  for (auto each : object) {
    std::string_view key;
    Value value;
    if (!take_field(std::move(each), key, value)) return false;
    if (key == "tensor") return read_tensors(value);  // Paddle's stand in the same place
    if (!read_part(key, value, parts)) return false;
  }
  if (!check(parts)) return false;
  parts.output.datatype = parts.datatype;
  AnswerOutput& output = add(parts.output);
  return !parts.binary_bytes || read_binary(output, *parts.binary_bytes, found == outputs.size() - 1);
}

bool AnswerReader::State::read_part(std::string_view key, Value& value, Parts& parts) {
  if (key == "name") return parts.named = !value.get(parts.output.name);
  if (key == "datatype") return !value.get(parts.datatype);
  if (key == "shape") return parts.shaped = read_shape(value, parts.output.shape);
  if (key == "parameters") return read_parameters(value, parts.binary_bytes);
  if (key != "data") return true;

  const bool perhaps = parts.named ? is_wanted(parts.output.name) : !found;  // it may have its name still to come
  const bool numbers = !parts.datatype.empty() && parts.datatype != "BYTES";
  if (!perhaps && numbers && !every_number) {
    parts.data = Parts::Data::kSteppedOver;
    return true;
  }
  Range wanted_elements = range(perhaps);
  if (const auto elements = parts.output.shape.checked_elements(); elements && parts.shaped && !wanted_elements.empty())
    wanted_elements = row_of(parts.output.shape, static_cast<size_t>(*elements));
  ListTensor tensor(parts.lists, wanted_elements);
  if (!read_lists(value, tensor, parts.output)) return false;
  parts.data = Parts::Data::kListed;
  parts.elements = tensor.elements();
  return true;
}

/// Whether its parts agree with each other.
bool AnswerReader::State::check(const Parts& parts) {
  const bool listed = parts.data != Parts::Data::kMissing;
  if (!parts.named || !parts.shaped || parts.datatype.empty() || listed == parts.binary_bytes.has_value()) return false;
  if (parts.output.texts != 0 && parts.datatype != "BYTES") return false;
  if (parts.data != Parts::Data::kListed) return true;
  const bool flat = parts.lists.rank() <= 1;
  return parts.output.shape.checked_elements() == static_cast<int64_t>(parts.elements) && (flat || parts.lists == parts.output.shape);
}

bool AnswerReader::State::read_binary(AnswerOutput& output, uint64_t size, bool mine) {
  if (size > tail.size()) return false;
  const std::string_view bytes = tail.substr(0, size);
  tail.remove_prefix(size);
  return read_raw(output, bytes, mine);
}

bool AnswerReader::State::read_raw(AnswerOutput& output, std::string_view bytes, bool mine) {
  const auto dtype = parse_oip_datatype(output.datatype);
  if (!dtype) return false;
  if (output.datatype == "BYTES") {
    output.texts = digest(0, bytes);
    if (mine && wanted.strings) keep_strings(bytes);
    return true;
  }
  const auto elements = output.shape.checked_elements();
  const size_t width = dtype_size(*dtype);
  if (!elements || bytes.size() % width != 0 || bytes.size() / width != static_cast<uint64_t>(*elements)) return false;
  const Range kept = range(mine).empty() ? Range() : row_of(output.shape, static_cast<size_t>(*elements));
  return read_elements(*dtype, bytes, kept, values) || failed();
}

/// None of them where the lengths are not those of the bytes.
void AnswerReader::State::keep_strings(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto text = take_text(bytes);
    if (!text) return strings.clear();
    strings.push_back(*text);
  }
}

/// Of Triton's generate: {"model_name": "m", "model_version": "1", "id": "a", "scores": [0.1, 0.9], "label": 1}
bool AnswerReader::State::read_flat(Object& root) {
  for (auto each : root) {
    std::string_view name;
    Value value;
    if (!take_field(std::move(each), name, value)) return false;
    const bool about = name == "model_name" || name == "model_version" || name == "id";
    if (!about && !read_column(name, value)) return false;
  }
  return !outputs.empty();
}

}  // namespace serin::protocol
