// oip_decode.cc: JSON -> tensors with simdjson's DOM, whose parser bounds the nesting (no recursion deeper than its limit) and checks UTF-8.
//
// Order of checks: the text is JSON; the top is an object with keys this protocol has; each input is one of the model's, given once, with its
// datatype and a shape the model takes; only then memory is taken, and the data is read into it, element by element, with range checks.

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <ranges>

#include "runtime/protocol/datatype.h"
#include "runtime/protocol/oip_rest.h"

namespace serin::protocol {
namespace {

namespace dom = simdjson::dom;

// The parser's buffers are kept by each thread: a steady stream of requests allocates nothing here.
dom::parser& thread_parser() {
  thread_local dom::parser parser;
  return parser;
}

class Decoder {
 public:
  Decoder(const Signature& signature, const RequestLimits& limits, std::string* field)
      : signature_(signature), limits_(limits), field_(field) {}
  Result<InferRequest> decode(std::string& body);

 private:
  struct Slot {
    bool given = false;
    dom::element data;
    std::string where;  ///< JSON pointer of the input
    size_t offset = 0;
  };

  Error fail(std::string where, std::string message, Code code = Code::kInvalidArgument) const {
    if (field_) *field_ = std::move(where);
    return Error{code, std::move(message)};
  }
  Status read_top(const dom::object& top, std::optional<dom::array>& inputs, std::optional<dom::array>& outputs);
  Status read_parameters(const dom::element& element);
  Status read_input(const dom::element& element, size_t position);
  Status read_shape(const dom::element& element, const TensorSpec& spec, const std::string& where, Shape& shape) const;
  Status read_outputs(const dom::array& outputs);
  Status read_data();

  const Signature& signature_;
  const RequestLimits& limits_;
  std::string* field_;
  InferRequest request_;
  std::vector<Slot> slots_;
};

std::string_view kind_of(const dom::element& element) {
  switch (element.type()) {
    case dom::element_type::ARRAY: return "an array";
    case dom::element_type::OBJECT: return "an object";
    case dom::element_type::STRING: return "a string";
    case dom::element_type::BOOL: return "true or false";
    case dom::element_type::NULL_VALUE: return "null";
    default: return "a number";
  }
}

// Reads numbers (or booleans) into dense memory, from a flat list or from lists nested as the shape is.
class DataReader {
 public:
  DataReader(const TensorView& tensor, std::string_view name) : tensor_(tensor), name_(name), size_(tensor.elements()) {}

  Status read(const dom::array& data) {
    const bool flat = tensor_.shape.rank() <= 1 || data.size() == 0 || !data.at(0).is_array();
    SERIN_CHECK(flat ? read_flat(data) : read_nested(data, 0));
    if (done_ != size_) return short_or_long(done_);
    return {};
  }

 private:
  Error short_or_long(int64_t count) const {
    return Error{Code::kInvalidArgument,
                 fmt::format("input '{}': shape {} takes {} elements, data has {}", name_, tensor_.shape.str(), size_, count)};
  }

  Status read_flat(const dom::array& data) {
    int64_t count = 0;
    for (const dom::element element : data) {
      if (count++ < size_) SERIN_CHECK(store(element));
    }
    if (count != size_) return short_or_long(count);
    return {};
  }

  // At most as deep as the shape's rank: the recursion ends there whatever the client nested.
  Status read_nested(const dom::array& data, size_t axis) {
    int64_t count = 0;
    const bool last = axis + 1 == tensor_.shape.rank();
    for (const dom::element element : data) {
      if (++count > tensor_.shape[axis]) break;
      if (last) {
        SERIN_CHECK(store(element));
        continue;
      }
      dom::array inner;
      if (element.get(inner))
        return Error{Code::kInvalidArgument, fmt::format("input '{}': data is nested unevenly: expected a list at depth {}, found {}",
                                                         name_, axis + 2, kind_of(element))};
      SERIN_CHECK(read_nested(inner, axis + 1));
    }
    if (count != tensor_.shape[axis])
      return Error{Code::kInvalidArgument,
                   fmt::format("input '{}': a list at depth {} has {} elements, shape {} has {} there", name_, axis + 1,
                               count > tensor_.shape[axis] ? "more" : std::to_string(count), tensor_.shape.str(), tensor_.shape[axis])};
    return {};
  }

  Status store(const dom::element& element) {
    switch (tensor_.dtype) {
      case DType::kFloat32: return store_float<float>(element);
      case DType::kFloat64: return store_float<double>(element);
      case DType::kInt8: return store_integer<int8_t>(element);
      case DType::kInt16: return store_integer<int16_t>(element);
      case DType::kInt32: return store_integer<int32_t>(element);
      case DType::kInt64: return store_integer<int64_t>(element);
      case DType::kUInt8: return store_integer<uint8_t>(element);
      case DType::kUInt16: return store_integer<uint16_t>(element);
      case DType::kUInt32: return store_integer<uint32_t>(element);
      case DType::kUInt64: return store_integer<uint64_t>(element);
      case DType::kBool: return store_bool(element);
      default: return Error{Code::kUnsupported, fmt::format("input '{}': {} as JSON is not supported", name_, oip_datatype(tensor_.dtype))};
    }
  }

  Error bad(const dom::element& element) const {
    const std::string shown = element.is_number() ? std::string(simdjson::minify(element)) : std::string(kind_of(element));
    const std::string_view wanted = oip_datatype(tensor_.dtype);
    const std::string_view article = wanted.front() == 'F' || wanted.front() == 'I' ? "an" : "a";  // an FP32, an INT8; a UINT8, a BOOL
    return Error{Code::kInvalidArgument,
                 fmt::format("input '{}': element {} is {}, which is not {} {}", name_, done_, shown, article, wanted)};
  }

  template <class T>
  Status store_float(const dom::element& element) {
    double value = 0;
    if (element.get(value)) return bad(element);  // integers convert
    if (std::abs(value) > static_cast<double>(std::numeric_limits<T>::max())) return bad(element);
    tensor_.as<T>()[done_++] = static_cast<T>(value);
    return {};
  }
  template <class T>
  Status store_integer(const dom::element& element) {
    int64_t narrow = 0;
    uint64_t wide = 0;
    if (!element.get(narrow) && std::in_range<T>(narrow))
      tensor_.as<T>()[done_++] = static_cast<T>(narrow);
    else if (!element.get(wide) && std::in_range<T>(wide))
      tensor_.as<T>()[done_++] = static_cast<T>(wide);
    else
      return bad(element);
    return {};
  }
  Status store_bool(const dom::element& element) {
    bool value = false;
    int64_t number = 0;
    if (!element.get(number) && (number == 0 || number == 1))
      value = number == 1;
    else if (element.get(value))
      return bad(element);
    tensor_.as<bool>()[done_++] = value;
    return {};
  }

  const TensorView& tensor_;
  std::string_view name_;
  int64_t size_;
  int64_t done_ = 0;
};

Result<dom::element> parse_json(dom::parser& parser, std::string& body, size_t depth, std::string* field) {
  if (field) field->clear();
  if (body.empty()) return Error{Code::kInvalidArgument, "failed to parse the request JSON buffer: The document is empty. at 0"};
  if (body.size() > parser.capacity() || parser.max_depth() != depth) {
    if (parser.allocate(std::max<size_t>(body.size(), 4096), depth)) return Error{Code::kTooLarge, "the request is too large to parse"};
  }
  body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  dom::element root;
  const auto error = parser.parse(reinterpret_cast<const uint8_t*>(body.data()), body.size(), false).get(root);
  if (error == simdjson::DEPTH_ERROR)
    return Error{Code::kInvalidArgument, fmt::format("the request JSON is nested deeper than {} levels", depth)};
  if (error)
    return Error{Code::kInvalidArgument, fmt::format("failed to parse the request JSON buffer: {}", simdjson::error_message(error))};
  return root;
}

Result<InferRequest> Decoder::decode(std::string& body) {
  SERIN_TRY(const dom::element root, parse_json(thread_parser(), body, limits_.json_depth, field_));
  dom::object top;
  if (root.get(top)) return fail("", fmt::format("the request must be a JSON object, not {}", kind_of(root)));

  std::optional<dom::array> inputs, outputs;
  SERIN_CHECK(read_top(top, inputs, outputs));
  if (!inputs) return fail("/inputs", "the request has no 'inputs'");

  slots_.resize(signature_.inputs.size());
  request_.inputs.resize(signature_.inputs.size());
  size_t position = 0;
  for (const dom::element element : *inputs) SERIN_CHECK(read_input(element, position++));
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].given)
      return fail("/inputs", fmt::format("expected {} inputs but got {} inputs for {}: input '{}' is missing", slots_.size(), position,
                                         signature_.model, signature_.inputs[i].name));
  }
  if (outputs) SERIN_CHECK(read_outputs(*outputs));
  if (request_.outputs.empty())
    for (size_t i = 0; i < signature_.outputs.size(); ++i) request_.outputs.push_back(i);
  SERIN_CHECK(read_data());
  return std::move(request_);
}

Status Decoder::read_top(const dom::object& top, std::optional<dom::array>& inputs, std::optional<dom::array>& outputs) {
  std::vector<std::string_view> seen;
  for (const auto [key, value] : top) {
    if (std::ranges::find(seen, key) != seen.end()) return fail(fmt::format("/{}", key), fmt::format("key '{}' is given twice", key));
    seen.push_back(key);
    if (key == "inputs" || key == "outputs") {
      dom::array list;
      if (value.get(list)) return fail(fmt::format("/{}", key), fmt::format("'{}' must be an array, not {}", key, kind_of(value)));
      (key == "inputs" ? inputs : outputs) = list;
    } else if (key == "id") {
      std::string_view id;
      if (value.get(id)) return fail("/id", fmt::format("'id' must be a string, not {}", kind_of(value)));
      if (id.size() > limits_.id_bytes) return fail("/id", fmt::format("'id' is longer than {} bytes", limits_.id_bytes));
      request_.id = id;
    } else if (key == "parameters") {
      SERIN_CHECK(read_parameters(value));
    }  // other keys belong to extensions that this server does not announce: the protocol has clients send them freely
  }
  return {};
}

Status Decoder::read_parameters(const dom::element& element) {
  dom::object parameters;
  if (element.get(parameters)) return fail("/parameters", fmt::format("'parameters' must be an object, not {}", kind_of(element)));
  for (const auto [key, value] : parameters) {
    if (key == "timeout") {
      if (value.get(request_.timeout_us) || request_.timeout_us < 0)
        return fail("/parameters/timeout", "parameter 'timeout' must be a whole number of microseconds, not negative");
    } else if (key == "binary_data_output") {
      bool wanted = false;
      if (value.get(wanted)) return fail("/parameters/binary_data_output", "parameter 'binary_data_output' must be true or false");
      if (wanted)
        return fail("/parameters/binary_data_output", "binary output is not supported yet: ask for JSON (binary_data_output false)",
                    Code::kUnsupported);
    }
  }
  return {};
}

Status Decoder::read_input(const dom::element& element, size_t position) {
  const std::string where = fmt::format("/inputs/{}", position);
  dom::object input;
  if (element.get(input)) return fail(where, fmt::format("an input must be an object, not {}", kind_of(element)));

  std::string_view name, datatype;
  dom::element shape_value, data;
  if (input["name"].get(name)) return fail(where + "/name", fmt::format("input {} has no 'name', or it is not a string", position));
  const auto spec = std::ranges::find(signature_.inputs, name, &TensorSpec::name);
  if (spec == signature_.inputs.end())
    return fail(
        where + "/name",
        fmt::format("unexpected inference input '{}' for {}; it has {}", name, signature_.model,
                    fmt::join(signature_.inputs | std::views::transform([](const TensorSpec& s) { return "'" + s.name + "'"; }), ", ")));
  const auto index = static_cast<size_t>(spec - signature_.inputs.begin());
  Slot& slot = slots_[index];
  if (slot.given) return fail(where + "/name", fmt::format("input '{}' is given twice", name));

  if (input["datatype"].get(datatype))
    return fail(where + "/datatype", fmt::format("input '{}' has no 'datatype', or it is not a string", name));
  const auto dtype = parse_oip_datatype(datatype);
  if (!dtype) return fail(where + "/datatype", fmt::format("input '{}': unknown datatype '{}'", name, datatype.substr(0, 32)));
  if (*dtype != spec->dtype)
    return fail(where + "/datatype", fmt::format("inference input '{}' data-type is '{}', but {} expects '{}'", name, datatype,
                                                 signature_.model, oip_datatype(spec->dtype)));

  Shape shape;
  if (input["shape"].get(shape_value)) return fail(where + "/shape", fmt::format("input '{}' has no 'shape'", name));
  SERIN_CHECK(read_shape(shape_value, *spec, where + "/shape", shape));
  if (input["data"].get(data)) {
    dom::element binary;
    if (!input["parameters"]["binary_data_size"].get(binary))
      return fail(where + "/parameters/binary_data_size", "binary tensor data is not supported yet: send 'data' as JSON",
                  Code::kUnsupported);
    return fail(where + "/data", fmt::format("input '{}' has no 'data'", name));
  }
  slot = Slot{true, data, where, 0};
  request_.inputs[index] = TensorView{*dtype, shape, nullptr};
  return {};
}

Status Decoder::read_shape(const dom::element& element, const TensorSpec& spec, const std::string& where, Shape& shape) const {
  dom::array dims;
  if (element.get(dims))
    return fail(where, fmt::format("input '{}': 'shape' must be a list of numbers, not {}", spec.name, kind_of(element)));
  std::string shown = std::string(simdjson::minify(element)).substr(0, 128);
  const auto refuse = [&](std::string_view why) {
    std::string expected = spec.shape.str();
    return fail(where, fmt::format("{}: input '{}' expects {} {}, the request has {}{}{}", signature_.model, spec.name, expected,
                                   oip_datatype(spec.dtype), shown, why.empty() ? "" : ": ", why));
  };
  if (dims.size() != spec.shape.rank()) return refuse("");
  size_t axis = 0;
  for (const dom::element dim : dims) {
    int64_t value = 0;
    if (dim.get(value)) return refuse("a dimension is not a whole number");
    if (value < 1) return refuse(value == 0 ? "a dimension is 0" : "a dimension is negative");
    if (spec.shape[axis] >= 0 && value != spec.shape[axis]) return refuse("");
    shape.push_back(value);
    ++axis;
  }
  const auto elements = shape.checked_elements();
  if (!elements || static_cast<uint64_t>(*elements) > limits_.tensor_bytes / std::max<size_t>(dtype_size(spec.dtype), 1))
    return fail(where, fmt::format("input '{}': shape {} is over the limit of {} bytes", spec.name, shown, limits_.tensor_bytes),
                Code::kTooLarge);
  return {};
}

Status Decoder::read_outputs(const dom::array& outputs) {
  if (outputs.size() > limits_.outputs) return fail("/outputs", fmt::format("more than {} outputs asked for", limits_.outputs));
  size_t position = 0;
  for (const dom::element element : outputs) {
    const std::string where = fmt::format("/outputs/{}", position++);
    std::string_view name;
    if (element["name"].get(name))
      return fail(where + "/name", fmt::format("output {} has no 'name', or it is not a string", position - 1));
    const auto spec = std::ranges::find(signature_.outputs, name, &TensorSpec::name);
    if (spec == signature_.outputs.end())
      return fail(where + "/name", fmt::format("unexpected inference output '{}' for {}", name, signature_.model));
    const auto index = static_cast<size_t>(spec - signature_.outputs.begin());
    if (std::ranges::find(request_.outputs, index) != request_.outputs.end())
      return fail(where + "/name", fmt::format("output '{}' is asked for twice", name));
    bool binary = false;
    if (!element["parameters"]["binary_data"].get(binary) && binary)
      return fail(where + "/parameters/binary_data", "binary output is not supported yet: ask for JSON", Code::kUnsupported);
    request_.outputs.push_back(index);
  }
  return {};
}

Status Decoder::read_data() {
  size_t total = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].offset = total;
    total += (request_.inputs[i].bytes() + AlignedBuffer::kAlignment - 1) / AlignedBuffer::kAlignment * AlignedBuffer::kAlignment;
    if (total > limits_.tensor_bytes)
      return fail("/inputs", fmt::format("the inputs are over the limit of {} bytes", limits_.tensor_bytes), Code::kTooLarge);
  }
  // A short list must not make us take the memory that its shape claims: an element needs at least one byte of text.
  for (size_t i = 0; i < slots_.size(); ++i) {
    dom::array data;
    if (slots_[i].data.get(data))
      return fail(slots_[i].where + "/data",
                  fmt::format("input '{}': 'data' must be a list, not {}", signature_.inputs[i].name, kind_of(slots_[i].data)));
    if (static_cast<size_t>(request_.inputs[i].elements()) > thread_parser().capacity())
      return fail(slots_[i].where + "/data",
                  fmt::format("input '{}': shape {} takes {} elements, data has fewer", signature_.inputs[i].name,
                              request_.inputs[i].shape.str(), request_.inputs[i].elements()));
  }
  request_.memory = AlignedBuffer(total);
  for (size_t i = 0; i < slots_.size(); ++i) {
    request_.inputs[i].data = request_.memory.data() + slots_[i].offset;
    if (auto read = DataReader(request_.inputs[i], signature_.inputs[i].name).read(dom::array(slots_[i].data)); !read)
      return fail(slots_[i].where + "/data", read.error().message, read.error().code);
  }
  return {};
}

// Bare NaN and Infinity are no JSON, but servers write them. They become zeros of the same length, and the answer is known not to be finite.
bool blank_non_finite(std::string& text) {
  bool found = false, in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        in_string = false;
      continue;
    }
    if (text[i] == '"') in_string = true;
    for (const std::string_view token : {std::string_view("NaN"), std::string_view("Infinity")}) {
      if (text.compare(i, token.size(), token) != 0) continue;
      text.replace(i, token.size(), "0" + std::string(token.size() - 1, ' '));
      found = true;
    }
  }
  return found;
}

}  // namespace

Result<InferRequest> decode_infer_request(std::string body, const Signature& signature, std::string* field, const RequestLimits& limits) {
  return Decoder(signature, limits, field).decode(body);
}

Result<std::vector<OutputValues>> decode_infer_response(std::string body) {
  const auto corrupt = [](std::string_view what) { return Error{Code::kCorrupt, fmt::format("not an inference answer: {}", what)}; };
  bool finite = true;
  auto root = parse_json(thread_parser(), body, 100, nullptr);
  if (!root && blank_non_finite(body)) {
    finite = false;
    root = parse_json(thread_parser(), body, 100, nullptr);
  }
  if (!root) return corrupt(root.error().message);
  dom::array list;
  if ((*root)["outputs"].get(list)) return corrupt("no list 'outputs'");

  std::vector<OutputValues> outputs;
  for (const dom::element element : list) {
    OutputValues output;
    std::string_view name, datatype;
    dom::array shape, data;
    if (element["name"].get(name) || element["datatype"].get(datatype) || element["shape"].get(shape) || element["data"].get(data))
      return corrupt("an output lacks name, datatype, shape or data");
    output.name = name;
    output.datatype = datatype;
    output.finite = finite;
    if (!Shape::fits(shape.size())) return corrupt("an output's shape has too many dimensions");
    for (const dom::element dim : shape) {
      int64_t value = 0;
      if (dim.get(value) || value < 0) return corrupt("an output's shape is not a list of numbers");
      output.shape.push_back(value);
    }
    if (datatype != "BYTES") {
      output.values.reserve(data.size());
      for (const dom::element value : data) {
        double number = 0;
        bool truth = false;
        if (!value.get(truth))
          number = truth ? 1 : 0;
        else if (value.get(number))
          return corrupt("an output's data is not a flat list of numbers");
        output.values.push_back(number);
      }
      if (output.shape.checked_elements() != static_cast<int64_t>(output.values.size()))
        return corrupt(fmt::format("output '{}' has {} elements for shape {}", name, output.values.size(), output.shape.str()));
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace serin::protocol
