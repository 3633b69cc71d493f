// oip_decode.cc: decodes an inference request over REST into tensors.
//
// Order of checks: the text is JSON; the top is an object with keys this protocol has; each input is one of the model's, given once, with
// its datatype and a shape the model takes; the bytes after the JSON are those that its inputs claim; only then memory is taken, and the
// data is read into it, element by element, with range checks.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "runtime/protocol/json/json.h"
#include "runtime/protocol/json/json_parameter.h"
#include "runtime/protocol/json/number_lists.h"
#include "runtime/protocol/oip/oip_rest.h"
#include "runtime/protocol/tensor/datatype.h"
#include "runtime/protocol/tensor/raw_tensor.h"
#include "runtime/protocol/tensor/request_builder.h"

namespace serin::protocol {
namespace {

namespace dom = simdjson::dom;

class Decoder {
 public:
  /// `lists`: those that were cut out of the text (number_lists.h); an input's data is then a number, which says which.
  Decoder(const Signature& signature, const RequestLimits& limits, std::string* field, InferRequest memory,
          std::span<const std::span<const double>> lists = {})
      : signature_(signature),
        limits_(limits),
        field_(field),
        builder_(signature, limits, std::move(memory)),
        slots_(signature.inputs.size()),
        lists_(lists) {}
  Result<InferRequest> decode(OipBody& body);

 private:
  struct Slot {
    std::string where;  ///< JSON pointer of the input
    std::optional<dom::element> data;
    std::string_view bytes;  ///< in place of it
    SharedRangePtr shared;   ///< or this
  };

  Error fail(std::string where, Error error) const {
    if (field_) *field_ = std::move(where);
    return error;
  }
  /// JSON that has not the protocol's form.
  Error fail(std::string where, std::string message, Code code = Code::kCorrupt) const {
    return fail(std::move(where), Error{code, std::move(message)});
  }
  /// Of the right form, but it contradicts itself or asks for what is not there.
  Error refuse(std::string where, std::string message) const { return fail(std::move(where), invalid(std::move(message))); }
  /// `rest`: of the pointer, which is put together where something is wrong.
  Status at(std::string_view where, std::string_view rest, const Status& status) const {
    return status ? status : Status(fail(std::string(where).append(rest), status.error()));
  }
  Status at(std::string_view where, const Status& status) const { return at(where, {}, status); }
  Status read_top(const dom::object& top, std::optional<dom::array>& inputs, std::optional<dom::array>& outputs);
  Status read_parameters(const dom::element& element);
  Status read_input(const dom::element& element, size_t position);
  Status read_shape(const dom::element& element, size_t input, const std::string& where);
  Result<SharedRangePtr> open_range(const dom::object& tensor, const std::string& where, const std::string& name) const;
  Status take_bytes(const dom::object& input, std::string_view name, Slot& slot);
  Status read_outputs(const dom::array& outputs);
  Status read_output(const dom::element& element, size_t position);
  Status read_data(size_t text_bytes);
  Status read_lists();
  Result<InferRequest> decode_only_input(std::string_view bytes);

  const Signature& signature_;
  const RequestLimits& limits_;
  std::string* field_;
  RequestBuilder builder_;
  Few<Slot> slots_;
  const std::span<const std::span<const double>> lists_;
  std::string_view tail_;        // bytes behind the JSON that no input has taken yet
  bool binary_outputs_ = false;  // where an output does not say
  bool marked_ = false;          // the document: texts may be NaN or infinite
};

Result<InferRequest> Decoder::decode(OipBody& body) {
  if (field_) field_->clear();
  const size_t json_bytes = body.json_bytes.value_or(body.bytes.size());
  if (json_bytes > body.bytes.size())
    return refuse(std::string(kJsonLength),
                  fmt::format("header {} is {}, but the body has {} bytes", kJsonLength, json_bytes, body.bytes.size()));
  if (body.json_bytes == 0u) return decode_only_input(body.bytes);
  SERIN_TRY(const Document document, parse_json(body.bytes, limits_.json_depth, json_bytes, {.number_words = NumberWords::kInLists}));
  marked_ = document.marked;
  tail_ = std::string_view(body.bytes).substr(json_bytes);
  dom::object top;
  if (document.root.get(top)) return fail("", fmt::format("the request must be a JSON object, not {}", kind_of(document.root)));

  std::optional<dom::array> inputs, outputs;
  SERIN_CHECK(read_top(top, inputs, outputs));
  if (!inputs && !top["instances"].error())
    return fail(std::string(kInstances), "the request has no 'inputs'; with 'instances' it is V1's");
  if (!inputs) return fail("/inputs", "the request has no 'inputs'");

  size_t position = 0;
  for (const dom::element element : *inputs) SERIN_CHECK(read_input(element, position++));
  SERIN_CHECK(at("/inputs", builder_.check_required_given()));
  if (!tail_.empty())
    return refuse("/inputs", fmt::format("{} bytes behind the JSON belong to no input: see 'binary_data_size'", tail_.size()));
  if (outputs) SERIN_CHECK(read_outputs(*outputs));
  builder_.want_rest(binary_outputs_);
  SERIN_CHECK(lists_.empty() ? read_data(json_bytes) : read_lists());
  return builder_.take();
}

/// The body is one tensor, a batch of one; a dimension that the model leaves open is what the bytes make of it.
Result<InferRequest> Decoder::decode_only_input(std::string_view bytes) {
  const std::string where(kJsonLength);
  if (signature_.inputs.size() != 1)
    return refuse(
        where, fmt::format("a request without JSON takes a model with one input, {} has {}", signature_.model, signature_.inputs.size()));
  const TensorSpec& spec = signature_.inputs.front();
  SERIN_TRY(const size_t input, builder_.begin_input(spec.name));
  SERIN_CHECK(builder_.set_datatype(input, oip_datatype(spec.dtype)));

  const auto open = [](int64_t dim) { return dim < 0; };
  Few<int64_t> dims(spec.shape.begin(), spec.shape.end());
  if (dims.size() > 1 && open(dims.front())) dims.front() = 1;
  if (!spec.ranked || std::ranges::count_if(dims, open) > 1)
    return refuse(where, fmt::format("a request without JSON takes an input with one open dimension besides the batch, '{}' is {}",
                                     spec.name, spec.ranked ? spec.shape.str() : "of any shape"));
  size_t of_one = dtype_size(spec.dtype);  // bytes for each step of the open dimension; 0: BYTES, which are one element
  for (const int64_t dim : dims) of_one *= open(dim) ? 1 : static_cast<size_t>(dim);
  std::ranges::replace_if(dims, open, of_one == 0 ? 1 : static_cast<int64_t>(bytes.size() / of_one));
  SERIN_CHECK(at(where, builder_.set_shape(input, {dims.data(), dims.size()})));
  builder_.want_rest(true);
  SERIN_CHECK(at(where, check_raw(bytes, builder_.request.inputs[input], spec.name)));
  SERIN_CHECK(at(where, builder_.allocate(bytes.size())));
  read_raw(bytes, builder_.request.inputs[input]);
  return std::move(builder_.request);
}

Status Decoder::read_top(const dom::object& top, std::optional<dom::array>& inputs, std::optional<dom::array>& outputs) {
  std::pair<std::string_view, bool> known[] = {{"inputs", false}, {"outputs", false}, {"id", false}, {"parameters", false}};
  for (const auto [key, value] : top) {
    const auto place = std::ranges::find(known, key, [](const auto& entry) { return entry.first; });
    if (place == std::end(known)) continue;  // of extensions that this server does not announce: the protocol has clients send them freely
    if (std::exchange(place->second, true)) return fail(fmt::format("/{}", key), fmt::format("key '{}' is given twice", key));
    if (value.is_null() && key != "inputs") continue;  // KServe's own data model writes so what is absent
    if (key == "inputs" || key == "outputs") {
      dom::array list;
      if (value.get(list)) return fail(fmt::format("/{}", key), fmt::format("'{}' must be an array, not {}", key, kind_of(value)));
      (key == "inputs" ? inputs : outputs) = list;
    } else if (key == "id") {
      std::string_view id;
      if (value.get(id)) return fail("/id", fmt::format("'id' must be a string, not {}", kind_of(value)));
      if (id.size() > limits_.id_bytes) return fail("/id", fmt::format("'id' is longer than {} bytes", limits_.id_bytes));
      builder_.request.id = id;
    } else {
      SERIN_CHECK(read_parameters(value));
    }
  }
  return {};
}

Status Decoder::read_parameters(const dom::element& element) {
  dom::object parameters;
  if (element.get(parameters)) return fail("/parameters", fmt::format("'parameters' must be an object, not {}", kind_of(element)));
  for (const auto [key, value] : parameters) {
    if (key == "binary_data_output") {
      if (value.get(binary_outputs_)) return fail("/parameters/binary_data_output", "parameter 'binary_data_output' must be true or false");
    } else if (const Status set = builder_.set_parameter(key, parameter_value(value)); !set) {
      return fail(fmt::format("/parameters/{}", key), set.error().message,
                  set.error().code == Code::kUnsupported ? Code::kUnsupported : Code::kCorrupt);
    }
  }
  return {};
}

Status Decoder::read_input(const dom::element& element, size_t position) {
  const std::string where = fmt::format("/inputs/{}", position);
  dom::object input;
  if (element.get(input)) return fail(where, fmt::format("an input must be an object, not {}", kind_of(element)));

  std::string_view name, datatype;
  if (input["name"].get(name)) return fail(where + "/name", fmt::format("input {} has no 'name', or it is not a string", position));
  const auto index = builder_.begin_input(name);
  if (!index) return fail(where + "/name", index.error());
  if (input["datatype"].get(datatype))
    return fail(where + "/datatype", fmt::format("input '{}' has no 'datatype', or it is not a string", name));
  SERIN_CHECK(at(where, "/datatype", builder_.set_datatype(*index, datatype)));
  dom::element shape, data;
  if (input["shape"].get(shape)) return fail(where + "/shape", fmt::format("input '{}' has no 'shape'", name));
  SERIN_CHECK(read_shape(shape, *index, where));
  Slot& slot = slots_[*index];
  slot.where = where;
  if (input["data"].get(data)) return take_bytes(input, name, slot);
  dom::element size;
  if (!input["parameters"]["binary_data_size"].get(size))
    return refuse(where + "/data", fmt::format("input '{}' has both 'data' and 'binary_data_size'", name));
  slot.data = data;
  return {};
}

Status Decoder::read_shape(const dom::element& element, size_t input, const std::string& where) {
  dom::array list;
  if (element.get(list))
    return fail(where + "/shape",
                fmt::format("input '{}': 'shape' must be a list of numbers, not {}", signature_.inputs[input].name, kind_of(element)));
  Shape dims;
  for (const dom::element dim : list) {
    const auto no_shape = [&](std::string_view why) {
      return fail(where + "/shape", builder_.bad_shape(input, std::string(simdjson::minify(element)).substr(0, 128), why).message);
    };
    int64_t value = 0;
    double large = 0;  // integers convert
    if (dim.get(value))
      return no_shape(!dim.get(large) && large >= 0x1p63 ? "a dimension is too large" : "a dimension is not a whole number");
    if (value < 0) return no_shape("a dimension is negative");
    if (!Shape::fits(dims.rank() + 1)) return no_shape("too many dimensions");
    dims.push_back(value);
  }
  return at(where, "/shape", builder_.set_shape(input, {dims.begin(), dims.end()}));
}

/// Null: the tensor does not lie in shared memory.
Result<SharedRangePtr> Decoder::open_range(const dom::object& tensor, const std::string& where, const std::string& name) const {
  dom::object given;
  dom::element region;
  if (tensor["parameters"].get(given) || given["shared_memory_region"].get(region)) return SharedRangePtr();
  SharedParameters parameters;
  if (region.get(parameters.region))
    return fail(where + "/parameters/shared_memory_region", name + ": 'shared_memory_region' must be a name");
  const auto number = [&](std::string_view key) {
    int64_t value = 0;
    dom::element element;
    if (given[key].get(element)) return std::optional<int64_t>();
    return element.get(value) ? std::optional<int64_t>(-1) : std::optional(value);
  };
  parameters.bytes = number("shared_memory_byte_size");
  parameters.offset = number("shared_memory_offset");
  auto range = open_shared(limits_.shared, parameters, name);
  if (!range) return fail(where + "/parameters/shared_memory_region", range.error());
  return range;
}

/// Inputs that have no data have bytes behind the JSON, in the order in which they are named.
Status Decoder::take_bytes(const dom::object& input, std::string_view name, Slot& slot) {
  const auto where = [&] { return slot.where + "/parameters/binary_data_size"; };
  dom::element size;
  if (input["parameters"]["binary_data_size"].get(size)) {
    SERIN_TRY(slot.shared, open_range(input, slot.where, fmt::format("input '{}'", name)));
    if (slot.shared) return {};
    return refuse(slot.where + "/data", fmt::format("input '{}' has no 'data'", name));
  }
  uint64_t bytes = 0;
  if (size.get(bytes)) return fail(where(), fmt::format("input '{}': 'binary_data_size' must be a number of bytes", name));
  if (bytes > tail_.size())
    return refuse(where(), fmt::format("input '{}': 'binary_data_size' is {}, but {} bytes are left behind the JSON (header {})", name,
                                       bytes, tail_.size(), kJsonLength));
  slot.bytes = tail_.substr(0, bytes);
  tail_.remove_prefix(bytes);
  return {};
}

Status Decoder::read_outputs(const dom::array& outputs) {
  size_t position = 0;
  for (const dom::element element : outputs) SERIN_CHECK(read_output(element, position++));
  return {};
}

Status Decoder::read_output(const dom::element& element, size_t position) {
  const std::string where = fmt::format("/outputs/{}", position);
  std::string_view name;
  if (element["name"].get(name)) return fail(where + "/name", fmt::format("output {} has no 'name', or it is not a string", position));
  WantedOutput how{.binary = binary_outputs_};
  dom::element value;
  if (!element["parameters"]["binary_data"].get(value) && value.get(how.binary))
    return fail(where + "/parameters/binary_data", "parameter 'binary_data' must be true or false");
  if (!element["parameters"]["classification"].get(value) && (value.get(how.classes) || how.classes < 1))
    return fail(where + "/parameters/classification", "parameter 'classification' must be a number of classes, at least 1");
  dom::object output;
  if (!element.get(output)) {
    SERIN_TRY(how.shared, open_range(output, where, fmt::format("output '{}'", name)));
  }
  return at(where, "/name", builder_.want(name, how));
}

Status Decoder::read_data(size_t text_bytes) {
  const std::vector<TensorView>& inputs = builder_.request.inputs;
  size_t held = text_bytes;  // by texts, at most
  // A short list must not make us take the memory that its shape claims: an element needs at least one byte of text.
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!builder_.is_given(i)) continue;
    const Slot& slot = slots_[i];
    if (inputs[i].dtype == DType::kString) held += slot.shared ? shared_text_bytes(*slot.shared) : slot.bytes.size();
    if (slot.shared) {
      SERIN_CHECK(at(slot.where, "/parameters", check_shared(*slot.shared, inputs[i], signature_.inputs[i].name, limits_.tensor_bytes)));
      continue;
    }
    if (!slot.data) {
      SERIN_CHECK(at(slot.where, "/parameters/binary_data_size", check_raw(slot.bytes, inputs[i], signature_.inputs[i].name)));
      continue;
    }
    if (!slot.data->is_array())
      return fail(slot.where + "/data",
                  fmt::format("input '{}': 'data' must be a list, not {}", signature_.inputs[i].name, kind_of(*slot.data)));
    if (static_cast<size_t>(inputs[i].elements()) > text_bytes)
      return fail(slot.where + "/data", fmt::format("input '{}': shape {} takes {} elements, data has fewer", signature_.inputs[i].name,
                                                    inputs[i].shape.str(), inputs[i].elements()));
  }
  SERIN_CHECK(at("/inputs", builder_.allocate(held)));
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!builder_.is_given(i)) continue;
    const Slot& slot = slots_[i];
    if (slot.data)
      SERIN_CHECK(
          at(slot.where, "/data", read_elements(dom::array(*slot.data), inputs[i], signature_.inputs[i].name, {.number_words = marked_})));
    else if (slot.shared)
      SERIN_CHECK(at(slot.where, "/parameters", read_shared(*slot.shared, inputs[i], signature_.inputs[i].name)));
    else
      read_raw(slot.bytes, inputs[i]);
  }
  return {};
}

/// Where anything is not as it should be, the text is read once more as it came, which says what.
Status Decoder::read_lists() {
  constexpr double kLeastInfinite = 0x1.ffffffp127;  // that rounds to it
  Error wrong{Code::kInvalidArgument, "a list does not fit its input"};
  SERIN_CHECK(builder_.allocate());
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!builder_.is_given(i)) continue;
    const TensorView& input = builder_.request.inputs[i];
    uint64_t index = 0;
    if (!slots_[i].data || slots_[i].data->get(index) || index >= lists_.size()) return wrong;
    const std::span<const double> list = lists_[index];
    if (static_cast<int64_t>(list.size()) != input.elements()) return wrong;
    if (input.dtype == DType::kFloat64) {
      std::ranges::copy(list, input.as<double>());
      continue;
    }
    float* const out = input.as<float>();
    bool finite = true;
    for (size_t at = 0; at < list.size(); ++at) {
      out[at] = static_cast<float>(list[at]);
      finite &= std::abs(list[at]) < kLeastInfinite;
    }
    if (!finite) return wrong;
  }
  return {};
}

bool is_float(const TensorSpec& spec) { return spec.dtype == DType::kFloat32 || spec.dtype == DType::kFloat64; }

}  // namespace

Result<InferRequest> decode_infer_request(OipBody&& body, const Signature& signature, std::string* field, const RequestLimits& limits,
                                          InferRequest memory) {
  if (!body.json_bytes && std::ranges::all_of(signature.inputs, is_float)) {
    if (auto cut = cut_number_lists(body.bytes, "data")) {
      OipBody rest{std::move(cut->text), {}};
      if (auto request = Decoder(signature, limits, nullptr, std::exchange(memory, {}), cut->lists).decode(rest);
          request || request.error().code == Code::kOverloaded)
        return request;
    }
  }
  return Decoder(signature, limits, field, std::move(memory)).decode(body);
}

bool is_lone_element(std::string_view body, const Signature& signature) {
  if (signature.inputs.size() != 1 || !signature.inputs.front().body) return false;
  const size_t first = body.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && body[first] != '{';
}

Result<InferRequest> decode_lone_element(std::string_view body, const Signature& signature, const RequestLimits& limits,
                                         InferRequest memory) {
  RequestBuilder builder(signature, limits, std::move(memory));
  SERIN_TRY(const size_t input, builder.begin_input(signature.inputs.front().name));
  SERIN_CHECK(builder.set_datatype(input, oip_datatype(DType::kString)));
  SERIN_CHECK(builder.set_shape(input, std::array<int64_t, 1>{1}));
  builder.want_rest(false);
  SERIN_CHECK(builder.allocate(body.size()));
  builder.request.inputs[input].as<std::string>()[0] = body;
  return builder.take();
}

Result<bool> decode_index_request(std::string body) {
  if (body.empty()) return false;
  SERIN_TRY(const Document document, parse_json(body, RequestLimits().json_depth));
  dom::object top;
  if (document.root.get(top))
    return Error{Code::kInvalidArgument, fmt::format("the request must be a JSON object, not {}", kind_of(document.root))};
  bool ready = false;
  dom::element value;
  if (!top["ready"].get(value) && value.get(ready)) return Error{Code::kCorrupt, "'ready' must be true or false"};
  return ready;
}

}  // namespace serin::protocol
