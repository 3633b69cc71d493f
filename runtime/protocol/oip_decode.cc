// oip_decode.cc: the JSON of an inference request -> tensors.
//
// Order of checks: the text is JSON; the top is an object with keys this protocol has; each input is one of the model's, given once, with its
// datatype and a shape the model takes; only then memory is taken, and the data is read into it, element by element, with range checks.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ranges>

#include "runtime/protocol/datatype.h"
#include "runtime/protocol/json.h"
#include "runtime/protocol/oip_rest.h"

namespace serin::protocol {
namespace {

namespace dom = simdjson::dom;

/// What an element takes in memory, apart from the bytes of a long string, which the body's limit bounds.
size_t element_bytes(DType dtype) { return dtype == DType::kString ? sizeof(std::string) : std::max<size_t>(dtype_size(dtype), 1); }

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
  Status read_data(size_t text_bytes);

  const Signature& signature_;
  const RequestLimits& limits_;
  std::string* field_;
  InferRequest request_;
  std::vector<Slot> slots_;
};

Result<InferRequest> Decoder::decode(std::string& body) {
  if (field_) field_->clear();
  SERIN_TRY(const Document document, parse_json(body, limits_.json_depth));
  dom::object top;
  if (document.root.get(top)) return fail("", fmt::format("the request must be a JSON object, not {}", kind_of(document.root)));

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
  SERIN_CHECK(read_data(body.size()));
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
  if (spec.ranked && dims.size() != spec.shape.rank()) return refuse("");
  if (!Shape::fits(dims.size())) return refuse("too many dimensions");
  size_t axis = 0;
  for (const dom::element dim : dims) {
    int64_t value = 0;
    if (dim.get(value)) return refuse("a dimension is not a whole number");
    if (value < 1) return refuse(value == 0 ? "a dimension is 0" : "a dimension is negative");
    if (spec.ranked && spec.shape[axis] >= 0 && value != spec.shape[axis]) return refuse("");
    shape.push_back(value);
    ++axis;
  }
  const auto elements = shape.checked_elements();
  if (!elements || static_cast<uint64_t>(*elements) > limits_.tensor_bytes / element_bytes(spec.dtype))
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

Status Decoder::read_data(size_t text_bytes) {
  size_t total = 0, texts = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].offset = total;
    total += AlignedBuffer::rounded_up(request_.inputs[i].bytes());
    if (request_.inputs[i].dtype == DType::kString) texts += static_cast<size_t>(request_.inputs[i].elements()) * sizeof(std::string);
    if (total + texts > limits_.tensor_bytes)
      return fail("/inputs", fmt::format("the inputs are over the limit of {} bytes", limits_.tensor_bytes), Code::kTooLarge);
  }
  // A short list must not make us take the memory that its shape claims: an element needs at least one byte of text.
  for (size_t i = 0; i < slots_.size(); ++i) {
    dom::array data;
    if (slots_[i].data.get(data))
      return fail(slots_[i].where + "/data",
                  fmt::format("input '{}': 'data' must be a list, not {}", signature_.inputs[i].name, kind_of(slots_[i].data)));
    if (static_cast<size_t>(request_.inputs[i].elements()) > text_bytes)
      return fail(slots_[i].where + "/data",
                  fmt::format("input '{}': shape {} takes {} elements, data has fewer", signature_.inputs[i].name,
                              request_.inputs[i].shape.str(), request_.inputs[i].elements()));
  }
  request_.memory = AlignedBuffer(total);
  request_.texts.resize(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    TensorView& input = request_.inputs[i];
    input.data = request_.memory.data() + slots_[i].offset;
    if (input.dtype == DType::kString) {
      request_.texts[i].resize(static_cast<size_t>(input.elements()));
      input.data = request_.texts[i].data();
    }
    if (auto read = read_elements(dom::array(slots_[i].data), request_.inputs[i], signature_.inputs[i].name); !read)
      return fail(slots_[i].where + "/data", read.error().message, read.error().code);
  }
  return {};
}

}  // namespace

Result<InferRequest> decode_infer_request(std::string body, const Signature& signature, std::string* field, const RequestLimits& limits) {
  return Decoder(signature, limits, field).decode(body);
}

}  // namespace serin::protocol
