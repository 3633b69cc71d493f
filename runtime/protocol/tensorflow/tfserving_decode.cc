// tfserving_decode.cc: decodes a request of TensorFlow Serving's REST API into tensors.
//
// Nested lists give the shape of a tensor: the first elements of the lists determine it, and the model's signature accepts or refuses it.
// Only then memory is taken, and every list is compared with the shape while it is read.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/protocol/json/json.h"
#include "runtime/protocol/json/number_lists.h"
#include "runtime/protocol/tensor/request_builder.h"
#include "runtime/protocol/tensor/tensor_names.h"
#include "runtime/protocol/tensorflow/example_json.h"
#include "runtime/protocol/tensorflow/tfserving_rest.h"

namespace serin::protocol {
namespace {

namespace dom = simdjson::dom;

constexpr JsonStyle kStyle = {.complaint = "JSON Parse error", .number_words = NumberWords::kAnywhere};

constexpr size_t kLongestField = 256;   // names are the client's
constexpr size_t kSerializedGrows = 2;  // a short feature takes more bytes in a message than in JSON

using Lists = std::span<const std::span<const double>>;

/// The list that was cut out there (number_lists.h).
std::optional<std::span<const double>> cut_at(const dom::element& value, Lists lists) {
  std::string_view mark;
  if (lists.empty() || value.get(mark)) return std::nullopt;
  const auto index = cut_list(mark);
  return index && *index < lists.size() ? std::optional(lists[*index]) : std::nullopt;
}

/// As the lists are nested, along the first of each. One too deep to be a shape is as deep as it may be, and one more: nobody takes it.
std::vector<int64_t> dims_of(dom::element value, Lists lists) {
  std::vector<int64_t> dims;
  dom::array list;
  while (dims.size() <= Shape::kMaxRank && !value.get(list)) {
    dims.push_back(static_cast<int64_t>(count_of(list)));
    if (list.begin() == list.end()) break;
    value = *list.begin();
  }
  if (const auto cut = cut_at(value, lists)) dims.push_back(static_cast<int64_t>(cut->size()));
  return dims;
}

/// Lists that were cut out, in the lists that hold them, to the place of their tensor. False where they are not of its shape.
template <class T>
bool copy_cut(const dom::element& value, Lists lists, const Shape& shape, size_t axis, T*& to) {
  if (axis + 1 == shape.rank()) {
    const auto cut = cut_at(value, lists);
    if (!cut || static_cast<int64_t>(cut->size()) != shape[axis]) return false;
    to = std::ranges::transform(*cut, to, [](double number) { return static_cast<T>(number); }).out;  // too large: infinity
    return true;
  }
  dom::array list;
  if (value.get(list)) return false;
  int64_t count = 0;
  for (const dom::element inner : list)
    if (++count > shape[axis] || !copy_cut(inner, lists, shape, axis + 1, to)) return false;
  return count == shape[axis];
}

bool has_only_floats(const Signature& signature) {
  return std::ranges::all_of(signature.inputs,
                             [](const TensorSpec& spec) { return spec.dtype == DType::kFloat32 || spec.dtype == DType::kFloat64; });
}

bool is_row_of_names(const dom::element& value) { return value.is_object() && !is_base64(value); }

bool is_open_inference(const dom::element& inputs) {
  dom::element first;
  return !inputs.at(0).get(first) && first.is_object() && !first["datatype"].error();
}

class Decoder {
 public:
  /// `lists`: those that were cut out of a text of so many bytes.
  Decoder(const FindTfSignature& find, const RequestLimits& limits, std::string* field, size_t text_bytes, Lists lists = {})
      : find_(find), limits_(limits), field_(field), text_bytes_(text_bytes), lists_(lists) {}

  Result<TfPredict> decode_predict(std::string& body);
  Result<InferRequest> decode_examples(std::string& body, TfMethod method);

 private:
  using Fields = std::vector<std::pair<std::string_view, dom::element>>;

  Error fail(const std::string& where, Error error) const {
    if (field_) *field_ = where.substr(0, kLongestField);
    return error;
  }
  Error fail(const std::string& where, std::string message) const { return fail(where, invalid(std::move(message))); }
  Status at(std::string_view where, const Status& status) const {
    return status ? status : Status(fail(std::string(where), status.error()));
  }

  /// Those of the top that are known; each once.
  Status read_top(const Document& document);
  Status read_rows(const dom::array& rows);
  Status read_named_rows(const dom::array& rows);
  Status read_columns(const dom::element& columns);
  Status read_example_rows(const dom::array& examples);
  /// For a model that parses them itself.
  Status read_serialized_rows(const dom::array& examples);
  /// The only input, whose value this is.
  Status read_only(const dom::element& value, std::string_view where);
  Result<size_t> begin(std::string_view name, std::span<const int64_t> dims, const std::string& where);
  Status allocate(std::string_view where);
  Status read(const dom::element& value, const TensorView& tensor, size_t input, const std::string& where) {
    if (lists_.empty()) return at(where, read_value(value, tensor, signature_->inputs[input].name, rules_));
    auto* single = tensor.as<float>();
    auto* twice = tensor.as<double>();
    const bool read = tensor.shape.rank() > 0 && (tensor.dtype == DType::kFloat32 ? copy_cut(value, lists_, tensor.shape, 0, single)
                                                                                  : copy_cut(value, lists_, tensor.shape, 0, twice));
    return read ? Status() : Status(invalid("the lists do not form such a tensor"));  // which is told of the text as it came
  }
  Result<Fields> fields_of(const dom::element& example, const std::string& where) const;

  const FindTfSignature& find_;
  const RequestLimits& limits_;
  std::string* field_;
  const Signature* signature_ = nullptr;  // from here on set by read_top()
  std::optional<RequestBuilder> builder_;
  const size_t text_bytes_;
  size_t repeated_bytes_ = 0;  // of the context's texts in all examples
  const Lists lists_;
  ElementRules rules_ = {.round_to_infinity = true, .base64 = true, .flat = false};
  std::optional<dom::element> instances_, inputs_, examples_, context_;
};

Status Decoder::read_top(const Document& document) {
  dom::object top;
  rules_.number_words = document.marked;
  if (document.root.get(top)) return fail("", fmt::format("the request must be a JSON object, not {}", kind_of(document.root)));
  std::optional<dom::element> signature;
  const std::pair<std::string_view, std::optional<dom::element>*> known[] = {
      {"instances", &instances_}, {"inputs", &inputs_}, {"examples", &examples_}, {"context", &context_}, {"signature_name", &signature}};
  for (const auto [key, value] : top) {
    const auto place = std::ranges::find(known, key, [](const auto& entry) { return entry.first; });
    if (place == std::end(known)) continue;  // left alone there, too
    if (*place->second) return fail(fmt::format("/{}", key), fmt::format("key '{}' is given twice", key));
    *place->second = value;
  }
  std::string_view name;
  if (signature && signature->get(name)) return fail("/signature_name", "'signature_name' key must be a string value");
  auto found = find_(name);
  if (!found) return fail("/signature_name", found.error());
  signature_ = *found;
  if (!lists_.empty() && !has_only_floats(*signature_)) return invalid("lists were cut out for another signature");
  builder_.emplace(*signature_, limits_);
  return {};
}

Result<TfPredict> Decoder::decode_predict(std::string& body) {
  SERIN_TRY(const Document document, parse_json(body, limits_.json_depth, body.size(), kStyle));
  SERIN_CHECK(read_top(document));
  if (instances_ && inputs_) return fail("", "Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist");
  if (!instances_ && !inputs_) return fail("", "Missing 'inputs' or 'instances' key");
  builder_->want_rest(/*binary=*/false);
  if (inputs_ && inputs_->is_array() && is_open_inference(*inputs_))
    return fail("/inputs", "'inputs' has tensors of the Open Inference Protocol: POST /v2/models/MODEL/infer takes them");
  if (inputs_) {
    SERIN_CHECK(read_columns(*inputs_));
  } else {
    dom::array rows;
    if (instances_->get(rows))
      return fail("/instances", fmt::format("Expecting 'instances' to be an list/array, not {}", kind_of(*instances_)));
    SERIN_CHECK(read_rows(rows));
  }
  return TfPredict{std::move(builder_->request), instances_.has_value()};
}

Result<size_t> Decoder::begin(std::string_view name, std::span<const int64_t> dims, const std::string& where) {
  const auto input = builder_->begin_input(name);
  if (!input) return fail(where, input.error());
  builder_->request.inputs[*input].dtype = signature_->inputs[*input].dtype;  // JSON does not say another one
  SERIN_CHECK(at(where, builder_->set_shape(*input, dims)));
  return *input;
}

Status Decoder::allocate(std::string_view where) {
  SERIN_CHECK(at(where, builder_->check_all_given()));
  // A ragged list must not make us take the memory that its first elements claim.
  for (size_t i = 0; i < signature_->inputs.size(); ++i) {
    const TensorView& tensor = builder_->request.inputs[i];
    if (!may_fill(tensor, text_bytes_))
      return fail(std::string(where), fmt::format("input '{}': its first lists make a shape of {}, of which there is less",
                                                  signature_->inputs[i].name, tensor.shape.str()));
  }
  return at(where, builder_->allocate(text_bytes_ + repeated_bytes_));
}

Status Decoder::read_only(const dom::element& value, std::string_view where) {
  const std::string place(where);
  SERIN_TRY(const size_t input, begin(signature_->inputs.front().name, dims_of(value, lists_), place));
  SERIN_CHECK(allocate(where));
  return read(value, builder_->request.inputs[input], input, place);
}

Status Decoder::read_rows(const dom::array& rows) {
  if (rows.begin() == rows.end()) return fail("/instances", "No values in 'instances' array");
  if (is_row_of_names(*rows.begin())) return read_named_rows(rows);
  if (signature_->inputs.size() == 1) return read_only(*instances_, "/instances");
  return fail("/instances",
              fmt::format("instances is a plain list, but expecting list of objects as multiple input tensors required: {} has {}",
                          signature_->model, signature_->inputs.size()));
}

Status Decoder::read_named_rows(const dom::array& rows) {
  const auto count = static_cast<int64_t>(count_of(rows));
  for (const auto [name, value] : dom::object(*rows.begin())) {
    std::vector<int64_t> dims = dims_of(value, lists_);
    dims.insert(dims.begin(), count);
    SERIN_CHECK(begin(name, dims, fmt::format("/instances/0/{}", name)));
  }
  SERIN_CHECK(allocate("/instances/0"));
  int64_t row = 0;
  for (const dom::element element : rows) {
    const std::string where = fmt::format("/instances/{}", row);
    if (!is_row_of_names(element))
      return fail(where, fmt::format("Expecting object but got list at item {} of input list: {}", row, kind_of(element)));
    const dom::object names(element);
    if (names.size() != signature_->inputs.size())
      return fail(where, fmt::format("element {} of 'instances' has {} inputs, {} has {}", row, names.size(), signature_->model,
                                     signature_->inputs.size()));
    for (size_t i = 0; i < signature_->inputs.size(); ++i) {
      const std::string& name = signature_->inputs[i].name;
      dom::element value;
      if (names[name].get(value)) {
        std::vector<std::string_view> given;
        for (const auto [key, unused] : names) given.push_back(key);
        return fail(where, fmt::format("element {} of 'instances' has no input '{}'{}", row, name,
                                       given_instead_of(name, signature_->inputs, given)));
      }
      SERIN_CHECK(read(value, row_of(builder_->request.inputs[i], row), i, fmt::format("{}/{}", where, name)));
    }
    ++row;
  }
  return {};
}

Status Decoder::read_columns(const dom::element& columns) {
  if (!is_row_of_names(columns)) {
    if (signature_->inputs.size() == 1) return read_only(columns, "/inputs");
    return fail("/inputs",
                fmt::format("inputs is a plain value/list, but expecting an object as multiple input tensors required: {} has {}",
                            signature_->model, signature_->inputs.size()));
  }
  std::vector<std::optional<dom::element>> values(signature_->inputs.size());
  for (const auto [name, value] : dom::object(columns)) {
    SERIN_TRY(const size_t input, begin(name, dims_of(value, lists_), fmt::format("/inputs/{}", name)));
    values[input] = value;
  }
  SERIN_CHECK(allocate("/inputs"));
  for (size_t i = 0; i < values.size(); ++i)
    SERIN_CHECK(read(*values[i], builder_->request.inputs[i], i, fmt::format("/inputs/{}", signature_->inputs[i].name)));
  return {};
}

Result<InferRequest> Decoder::decode_examples(std::string& body, TfMethod method) {
  SERIN_TRY(const Document document, parse_json(body, limits_.json_depth, body.size(), kStyle));
  SERIN_CHECK(read_top(document));
  dom::array examples;
  if (!examples_) return fail("/examples", "When method is classify, key 'examples' is expected and was not found");
  if (examples_->get(examples))
    return fail("/examples", fmt::format("Expecting 'examples' value to be an list/array, not {}", kind_of(*examples_)));
  if (examples.begin() == examples.end()) return fail("/examples", "'examples' value is an empty array");
  SERIN_TRY(const std::vector<size_t> outputs, scored_outputs(method, *signature_));
  for (const size_t output : outputs) builder_->request.outputs.push_back({.index = output});
  SERIN_CHECK(parses_examples(*signature_) ? read_serialized_rows(examples) : read_example_rows(examples));
  return std::move(builder_->request);
}

Result<Decoder::Fields> Decoder::fields_of(const dom::element& example, const std::string& where) const {
  Fields fields;
  dom::object features;
  if (example.get(features)) return fail(where, fmt::format("Example must be JSON object but got JSON {}", kind_of(example)));
  for (const auto [name, value] : features) {
    if (std::ranges::find(fields, name, &Fields::value_type::first) != fields.end())
      return fail(fmt::format("{}/{}", where, name), fmt::format("feature '{}' is given twice", name));
    fields.emplace_back(name, value);
    if (fields.size() > signature_->inputs.size())
      return fail(where, fmt::format("an example has more features than {} has inputs", signature_->model));
  }
  return fields;
}

/// Characters of the texts there.
size_t text_bytes(const dom::element& value) {
  std::string_view text;
  dom::array list;
  if (!value.get(text)) return text.size();
  if (is_base64(value)) return value["b64"].get_string().value_unsafe().size();
  size_t bytes = 0;
  if (!value.get(list))
    for (const dom::element element : list) bytes += element.is_array() ? 0 : text_bytes(element);
  return bytes;
}

Status Decoder::read_example_rows(const dom::array& examples) {
  Fields common;
  if (context_) {
    SERIN_TRY(common, fields_of(*context_, "/context"));
  }
  const auto count = static_cast<int64_t>(count_of(examples));
  size_t repeated = 0;  // copied into every row
  for (const auto& [name, value] : common) repeated += text_bytes(value);
  if (repeated > limits_.tensor_bytes / static_cast<size_t>(count)) return fail("/context", too_much_context(limits_));
  repeated_bytes_ = repeated * static_cast<size_t>(count);
  int64_t row = 0;
  for (const dom::element example : examples) {
    const std::string where = fmt::format("/examples/{}", row);
    SERIN_TRY(Fields fields, fields_of(example, where));
    fields.insert(fields.end(), common.begin(), common.end());
    if (row == 0) {
      for (const auto& [name, value] : fields) {
        dom::array list;
        const auto values = value.get(list) ? 1 : static_cast<int64_t>(count_of(list));
        const auto spec = std::ranges::find(signature_->inputs, name, &TensorSpec::name);
        const auto dims = spec == signature_->inputs.end() ? std::vector<int64_t>() : example_dims(*spec, count, values);
        SERIN_CHECK(begin(name, dims, fmt::format("{}/{}", where, name)));
      }
      SERIN_CHECK(allocate(where));
    }
    if (fields.size() != signature_->inputs.size())
      return fail(where, fmt::format("example {} has {} features, {} has {} inputs", row, fields.size(), signature_->model,
                                     signature_->inputs.size()));
    for (size_t i = 0; i < signature_->inputs.size(); ++i) {
      const std::string& name = signature_->inputs[i].name;
      const auto found = std::ranges::find(fields, name, &Fields::value_type::first);
      if (found == fields.end())
        return fail(where, fmt::format("example {} has no feature '{}'{}", row, name,
                                       given_instead_of(name, signature_->inputs, fields | std::views::keys)));
      TensorView part = row_of(builder_->request.inputs[i], row);
      const bool bare = !found->second.is_array() && part.elements() == 1;  // one value needs no list
      part.shape = bare ? Shape() : Shape{part.elements()};
      SERIN_CHECK(read(found->second, part, i, fmt::format("{}/{}", where, name)));
    }
    ++row;
  }
  return {};
}

/// Two messages one after the other are one with the fields of both, in which the later feature of a name counts: so the context goes first.
Status Decoder::read_serialized_rows(const dom::array& examples) {
  const auto count = static_cast<int64_t>(count_of(examples));
  const auto append = [&](std::string& out, const dom::element& example, const std::string& where) {
    std::string feature;
    const Status status = append_example(out, example, rules_.number_words, &feature);
    return at(feature.empty() ? where : fmt::format("{}/{}", where, feature), status);
  };
  std::string context;
  if (context_) SERIN_CHECK(append(context, *context_, "/context"));
  if (context.size() > limits_.tensor_bytes / static_cast<size_t>(count)) return fail("/context", too_much_context(limits_));
  repeated_bytes_ = context.size() * static_cast<size_t>(count) + kSerializedGrows * text_bytes_;
  SERIN_TRY(const size_t input, begin(signature_->inputs.front().name, std::array{count}, "/examples"));
  SERIN_CHECK(allocate("/examples"));
  auto* row = builder_->request.inputs[input].as<std::string>();
  size_t number = 0;
  for (const dom::element example : examples) {
    *row = context;
    SERIN_CHECK(append(*row++, example, fmt::format("/examples/{}", number++)));
  }
  return {};
}

}  // namespace

Result<TfPredict> decode_tf_predict(std::string body, const FindTfSignature& find, std::string* field, const RequestLimits& limits) {
  const auto standard = find({});
  if (standard && has_only_floats(**standard)) {
    if (auto cut = cut_inner_lists(body)) {
      auto request = Decoder(find, limits, nullptr, body.size(), cut->lists).decode_predict(cut->text);
      if (request || request.error().code == Code::kOverloaded) return request;
    }
  }
  return Decoder(find, limits, field, body.size()).decode_predict(body);
}

Result<InferRequest> decode_tf_examples(std::string body, TfMethod method, const FindTfSignature& find, std::string* field,
                                        const RequestLimits& limits) {
  return Decoder(find, limits, field, body.size()).decode_examples(body, method);
}

}  // namespace serin::protocol
