#include "runtime/protocol/answers.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "kernels/float16.h"
#include "runtime/protocol/answer_json.h"
#include "runtime/protocol/datatype.h"

namespace serin::protocol {
namespace {

namespace dom = simdjson::dom;
using Outputs = std::vector<OutputValues>;

Error corrupt(std::string_view what) { return Error{Code::kCorrupt, fmt::format("not an inference answer: {}", what)}; }

// ---- lists nested as the tensor's shape is: TensorFlow Serving, Paddle's pipeline ----

/// Appends what `element` holds at this depth; the first way down fixes the shape, every other must have the same.
Status flatten(const dom::element& element, size_t depth, bool first, OutputValues& output) {
  dom::array list;
  if (!element.get(list)) {
    if (!Shape::fits(depth + 1)) return corrupt("lists are nested too deeply");
    const auto size = static_cast<int64_t>(list.size());
    if (first && depth == output.shape.rank()) output.shape.push_back(size);
    if (depth >= output.shape.rank() || output.shape[depth] != size) return corrupt("lists of different lengths");
    bool first_here = first;
    for (const dom::element inner : list) {
      SERIN_CHECK(flatten(inner, depth + 1, first_here, output));
      first_here = false;
    }
    return {};
  }
  if (depth != output.shape.rank()) return corrupt("lists of different depths");
  double number = 0;
  bool truth = false;
  std::string_view text;
  if (!element.get(truth))
    output.values.push_back(truth ? 1 : 0);
  else if (!element.get(number))
    output.values.push_back(number);
  else if (!element.get(text) || !element["b64"].get(text))
    output.datatype = "BYTES";
  else
    return corrupt("an element is neither number nor text");
  return {};
}

Result<OutputValues> nested(std::string_view name, const dom::element& element, bool finite) {
  OutputValues output{.name = std::string(name), .datatype = "FP64", .finite = finite};
  SERIN_CHECK(flatten(element, 0, true, output));
  if (output.datatype == "BYTES") output.values.clear();
  return output;
}

/// {"predictions": [{"a": [..], "b": ..}, ...]}: one object a row; an output is the list of its rows.
Result<Outputs> rows_of_objects(const dom::array& rows, bool finite) {
  Outputs outputs;
  for (const dom::element row : rows) {
    dom::object fields;
    if (row.get(fields)) return corrupt("predictions of different kinds");
    size_t place = 0;
    for (const auto& [name, value] : fields) {
      SERIN_TRY(OutputValues part, nested(name, value, finite));
      if (place == outputs.size()) {
        outputs.push_back({.name = part.name, .datatype = part.datatype, .shape = Shape{0}, .finite = finite});
        for (const int64_t dim : part.shape) outputs.back().shape.push_back(dim);
      }
      OutputValues& whole = outputs[place++];
      if (whole.name != part.name || whole.shape.rank() != part.shape.rank() + 1) return corrupt("predictions of different kinds");
      for (size_t axis = 0; axis < part.shape.rank(); ++axis)
        if (whole.shape[axis + 1] != part.shape[axis]) return corrupt("predictions of different shapes");
      whole.shape[0] += 1;
      whole.values.insert(whole.values.end(), part.values.begin(), part.values.end());
    }
  }
  return outputs;
}

Result<Outputs> tensorflow_rows(const dom::element& predictions, bool finite) {
  dom::array rows;
  if (predictions.get(rows)) return corrupt("predictions are no list");
  if (rows.size() > 0 && rows.at(0).is_object()) return rows_of_objects(rows, finite);
  SERIN_TRY(OutputValues output, nested("predictions", predictions, finite));
  return Outputs{std::move(output)};
}

Result<Outputs> tensorflow_columns(const dom::element& columns, bool finite) {
  dom::object named;
  Outputs outputs;
  if (columns.get(named)) {
    SERIN_TRY(OutputValues output, nested("outputs", columns, finite));
    outputs.push_back(std::move(output));
    return outputs;
  }
  for (const auto& [name, value] : named) {
    SERIN_TRY(OutputValues output, nested(name, value, finite));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

// ---- Paddle Serving ----

/// {"outputs": [{"tensor": [{"float_data": [..], "shape": [..], "alias_name": ..}]}], "err_no": 0}
Result<OutputValues> paddle_tensor(const dom::element& tensor, bool finite) {
  OutputValues output{.datatype = "FP64", .finite = finite};
  std::string_view name;
  if (tensor["alias_name"].get(name) && tensor["name"].get(name)) return corrupt("a tensor has no name");
  output.name = name;
  dom::array shape, data;
  if (!tensor["shape"].get(shape)) SERIN_CHECK(read_shape(shape, output));
  for (const char* key : {"float_data", "int64_data", "int_data", "float64_data", "uint32_data", "bool_data"}) {
    if (tensor[key].get(data) || data.size() == 0) continue;
    SERIN_CHECK(read_elements(data, output));
    return output;
  }
  output.datatype = "BYTES";  // texts, or raw bytes of a type that JSON has no numbers for
  return output;
}

Result<Outputs> paddle_tensors(const dom::array& groups, bool finite) {
  Outputs outputs;
  for (const dom::element group : groups) {
    dom::array tensors;
    if (group["tensor"].get(tensors)) return corrupt("outputs without tensors");
    for (const dom::element tensor : tensors) {
      SERIN_TRY(OutputValues output, paddle_tensor(tensor, finite));
      outputs.push_back(std::move(output));
    }
  }
  return outputs;
}

/// {"err_no": 0, "key": ["scores"], "value": ["[[0.1, 0.9]]"]}: tensors printed by Python.
Result<Outputs> paddle_pipeline(const dom::element& root, bool finite) {
  dom::array keys, values;
  if (root["key"].get(keys) || root["value"].get(values) || keys.size() != values.size()) return corrupt("key and value do not match");
  std::vector<std::pair<std::string, std::string>> texts;  // copied: parsing one of them reuses the thread's parser
  for (size_t i = 0; i < keys.size(); ++i) {
    std::string_view key, value;
    if (keys.at(i).get(key) || values.at(i).get(value)) return corrupt("key and value are no texts");
    texts.emplace_back(key, value);
  }
  Outputs outputs;
  for (auto& [key, value] : texts) {
    bool finite_here = finite;
    const auto document = parse_answer_json(value, finite_here);
    if (!document) {  // a text and no tensor
      outputs.push_back({.name = key, .datatype = "BYTES", .finite = finite});
      continue;
    }
    SERIN_TRY(OutputValues output, nested(key, document->root, finite_here));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

// ---- binary tensors of the Open Inference Protocol ----

double element_at(DType dtype, const char* bytes) {
  const auto as = [bytes]<class T>(T value) {
    std::memcpy(&value, bytes, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::kFloat32: return as(float());
    case DType::kFloat64: return as(double());
    case DType::kFloat16: return kernels::to_float(as(kernels::Half()));
    case DType::kBFloat16: return kernels::to_float(as(kernels::BFloat16()));
    case DType::kInt8: return as(int8_t());
    case DType::kInt16: return as(int16_t());
    case DType::kInt32: return as(int32_t());
    case DType::kInt64: return static_cast<double>(as(int64_t()));
    case DType::kUInt8: return as(uint8_t());
    case DType::kUInt16: return as(uint16_t());
    case DType::kUInt32: return as(uint32_t());
    case DType::kUInt64: return static_cast<double>(as(uint64_t()));
    case DType::kBool: return as(uint8_t()) != 0;
    default: return 0;
  }
}

/// Reads `size` bytes of one output, whose name, datatype and shape are known.
Status read_binary(std::string_view bytes, OutputValues& output) {
  const auto dtype = parse_oip_datatype(output.datatype);
  if (!dtype) return corrupt(fmt::format("datatype '{}'", output.datatype));
  if (output.datatype == "BYTES") return {};
  const auto elements = output.shape.checked_elements();
  const size_t width = dtype_size(*dtype);
  if (!elements || bytes.size() % width != 0 || bytes.size() / width != static_cast<uint64_t>(*elements))
    return corrupt(fmt::format("output '{}' of shape {} has {} bytes", output.name, output.shape.str(), bytes.size()));
  for (int64_t i = 0; i < *elements; ++i) {
    output.values.push_back(element_at(*dtype, bytes.data() + static_cast<size_t>(i) * width));
    output.finite = output.finite && std::isfinite(output.values.back());
  }
  return {};
}

Result<Outputs> open_inference(const dom::array& list, bool finite, std::string_view tail) {
  Outputs outputs;
  for (const dom::element element : list) {
    SERIN_TRY(OutputValues output, read_output_head(element));
    output.finite = finite;
    uint64_t size = 0;
    if (!element["parameters"]["binary_data_size"].get(size)) {
      if (size > tail.size()) return corrupt(fmt::format("output '{}' promises more bytes than there are", output.name));
      SERIN_CHECK(read_binary(tail.substr(0, size), output));
      tail.remove_prefix(size);
    } else {
      SERIN_CHECK(read_output_data(element, output));
    }
    outputs.push_back(std::move(output));
  }
  if (!tail.empty()) return corrupt(fmt::format("{} bytes belong to no output", tail.size()));
  return outputs;
}

}  // namespace

Result<Outputs> decode_answer(std::string body, std::optional<size_t> json_bytes) {
  if (json_bytes && *json_bytes > body.size()) return corrupt("its JSON is longer than it is");
  const std::string tail = json_bytes ? body.substr(*json_bytes) : "";
  if (json_bytes) body.resize(*json_bytes);
  bool finite = true;
  SERIN_TRY(const Document document, parse_answer_json(body, finite));
  const dom::element& root = document.root;
  int64_t failure = 0;
  if (!root["err_no"].get(failure) && failure != 0) return Error{Code::kInternal, fmt::format("err_no {}", failure)};

  dom::element predictions;
  if (!root["predictions"].get(predictions)) return tensorflow_rows(predictions, finite);
  if (root["key"].is_array() && root["value"].is_array()) return paddle_pipeline(root, finite);
  dom::element outputs;
  if (root["outputs"].get(outputs)) return corrupt("no outputs and no predictions");
  dom::array list;
  if (outputs.get(list) || list.size() == 0) return tensorflow_columns(outputs, finite);
  const dom::element first = list.at(0);
  if (first["tensor"].is_array()) return paddle_tensors(list, finite);
  if (first["datatype"].is_string()) return open_inference(list, finite, tail);
  return tensorflow_columns(outputs, finite);
}

}  // namespace serin::protocol
