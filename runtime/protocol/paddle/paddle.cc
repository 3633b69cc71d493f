// paddle.cc: decodes and encodes Paddle Serving's JSON, and its pipeline's, whose values are JSON within JSON.

#include "runtime/protocol/paddle/paddle.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/base64.h"
#include "runtime/base/wire_writer.h"
#include "runtime/protocol/json/json.h"
#include "runtime/protocol/json/json_error.h"
#include "runtime/protocol/json/json_words.h"
#include "runtime/protocol/json/json_write.h"
#include "runtime/protocol/paddle/paddle_tensor.h"
#include "runtime/protocol/tensor/raw_tensor.h"
#include "runtime/protocol/tensorflow/tfserving_rest.h"

namespace serin::protocol {
namespace {

namespace dom = simdjson::dom;

constexpr JsonStyle kStyle = {.number_words = NumberWords::kAnywhere};
constexpr int64_t kFailed = -5100;  // "Paddle Serving Op Inference Error"

class Decoder {
 public:
  Decoder(const Signature& signature, const RequestLimits& limits, std::string* field)
      : signature_(signature), limits_(limits), field_(field), builder_(signature, limits), slots_(signature.inputs.size()) {}

  Result<PaddleRequest> decode(std::string& body) {
    SERIN_TRY(const Document document, parse_json(body, limits_.json_depth, body.size(), kStyle));
    marked_ = document.marked;
    dom::object top;
    dom::array tensors;
    if (document.root.get(top)) return fail("", fmt::format("the request must be a JSON object, not {}", kind_of(document.root)));
    if (top["tensor"].get(tensors)) return fail("/tensor", "the request has no list 'tensor'");
    size_t position = 0;
    for (const dom::element tensor : tensors) SERIN_CHECK(begin(tensor, position++));
    SERIN_CHECK(at("/tensor", builder_.check_all_given()));
    SERIN_CHECK(read_fetched(top));
    SERIN_CHECK(read_data(body.size()));
    PaddleRequest request{std::move(builder_.request)};
    dom::element id;
    if (!top["log_id"].get(id) && id.get(request.log_id)) return fail("/log_id", "'log_id' must be a whole number, not negative");
    return request;
  }

 private:
  struct Slot {
    std::string where;
    dom::object tensor;
    std::string content;  ///< of types that come as bytes
  };

  Error fail(std::string where, Error error) const {
    if (field_) *field_ = std::move(where);
    return error;
  }
  Error fail(std::string where, std::string message) const { return fail(std::move(where), invalid(std::move(message))); }
  Status at(const std::string& where, const Status& status) const { return status ? status : Status(fail(where, status.error())); }

  Status begin(const dom::element& element, size_t position) {
    const std::string where = fmt::format("/tensor/{}", position);
    Slot slot{where, {}, {}};
    if (element.get(slot.tensor)) return fail(where, fmt::format("a tensor must be an object, not {}", kind_of(element)));
    PaddleTensor head;
    SERIN_CHECK(read_text(slot.tensor, "name", where, head.name));
    SERIN_CHECK(read_text(slot.tensor, "alias_name", where, head.alias));
    dom::element type;
    int64_t number = 0;
    if (!slot.tensor["elem_type"].get(type)) {
      if (type.get(number)) return fail(where + "/elem_type", "'elem_type' must be a whole number");
      head.type = number;
    }
    dom::array dims;
    if (slot.tensor["shape"].get(dims)) return fail(where + "/shape", fmt::format("tensor {} has no list 'shape'", position));
    for (const dom::element dim : dims) {
      if (dim.get(number)) return fail(where + "/shape", "a dimension is not a whole number");
      if (head.dims.size() > Shape::kMaxRank) break;  // more than any input has
      head.dims.push_back(number);
    }
    const auto input = begin_paddle_tensor(head, position, signature_, builder_);
    if (!input) return fail(where, input.error());
    slots_[*input] = std::move(slot);
    return {};
  }

  Status read_text(const dom::object& object, std::string_view key, const std::string& where, std::string_view& text) const {
    dom::element value;
    if (!object[key].get(value) && value.get(text))
      return fail(fmt::format("{}/{}", where, key), fmt::format("'{}' must be a string", key));
    return {};
  }

  Status read_fetched(const dom::object& top) {
    dom::element names;
    dom::array list;
    if (!top["fetch_var_names"].get(names)) {
      if (names.get(list)) return fail("/fetch_var_names", "'fetch_var_names' must be a list of strings");
      for (const dom::element element : list) {
        std::string_view name;
        if (element.get(name)) return fail("/fetch_var_names", "'fetch_var_names' must be a list of strings");
        SERIN_CHECK(at("/fetch_var_names", builder_.want(paddle_name(signature_.outputs, name), {})));
      }
    }
    builder_.want_rest(/*binary=*/false);
    return at("/fetch_var_names", check_paddle_outputs(builder_.request, signature_));
  }

  Status read_data(size_t text_bytes) {
    std::vector<TensorView>& inputs = builder_.request.inputs;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const std::string& name = signature_.inputs[i].name;
      const PaddleType& type = *paddle_type(inputs[i].dtype);
      const std::string where = fmt::format("{}/{}", slots_[i].where, type.list);
      dom::element data;
      if (slots_[i].tensor[type.list].get(data)) return fail(where, fmt::format("input '{}' has no '{}'", name, type.list));
      if (type.field == kPaddleContent) {
        std::string_view text;
        auto bytes = data.get(text) ? std::nullopt : decode_base64(text);
        if (!bytes) return fail(where, fmt::format("input '{}': '{}' must be a string of base64", name, type.list));
        slots_[i].content = std::move(*bytes);
        SERIN_CHECK(at(where, check_raw(slots_[i].content, inputs[i], name)));
      } else if (!data.is_array() || static_cast<size_t>(inputs[i].elements()) > text_bytes) {
        return fail(where,
                    fmt::format("input '{}': shape {} takes a list of {} elements", name, inputs[i].shape.str(), inputs[i].elements()));
      }
    }
    SERIN_CHECK(at("/tensor", builder_.allocate(text_bytes)));
    for (size_t i = 0; i < slots_.size(); ++i) {
      const PaddleType& type = *paddle_type(inputs[i].dtype);
      if (type.field == kPaddleContent) {
        read_raw(slots_[i].content, inputs[i]);
        continue;
      }
      const dom::array data(slots_[i].tensor[type.list]);
      const Status read = read_elements(data, inputs[i], signature_.inputs[i].name, {.number_words = marked_});
      SERIN_CHECK(at(fmt::format("{}/{}", slots_[i].where, type.list), read));
    }
    return {};
  }

  const Signature& signature_;
  const RequestLimits& limits_;
  std::string* field_;
  RequestBuilder builder_;
  std::vector<Slot> slots_;
  bool marked_ = false;  // the document
};

/// Both lists of a pipeline's request, copied: values are JSON of their own.
Result<std::vector<std::pair<std::string, std::string>>> read_pairs(const dom::object& top) {
  dom::array keys, values;
  if (top["key"].get(keys) || top["value"].get(values)) return invalid("the request has no lists 'key' and 'value'");
  if (count_of(keys) != count_of(values))
    return invalid(fmt::format("'key' has {} elements, 'value' has {}", count_of(keys), count_of(values)));
  std::vector<std::pair<std::string, std::string>> pairs;
  auto value = values.begin();
  for (const dom::element key : keys) {
    std::string_view name, text;
    if (key.get(name) || (*value).get(text)) return invalid("'key' and 'value' must be lists of strings");
    pairs.emplace_back(name, text);
    ++value;
  }
  return pairs;
}

/// The same as columns of tensors, which there is a codec for.
Result<PaddleRequest> decode_pipeline(std::string body, const Signature& signature, std::string* field, const RequestLimits& limits) {
  std::vector<std::pair<std::string, std::string>> pairs;
  PaddleRequest request;
  {
    SERIN_TRY(const Document document, parse_json(body, limits.json_depth, body.size(), kStyle));
    dom::object top;
    if (document.root.get(top)) return invalid(fmt::format("the request must be a JSON object, not {}", kind_of(document.root)));
    SERIN_TRY(pairs, read_pairs(top));
    dom::element id;
    if (!top["logid"].get(id) && id.get(request.log_id)) return invalid("'logid' must be a whole number, not negative");
  }
  std::string columns = R"({"inputs":{)";
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::string_view key = paddle_name(signature.inputs, pairs[i].first);
    const std::string& value = pairs[i].second;
    const auto spec = std::ranges::find(signature.inputs, key, &TensorSpec::name);
    const size_t first = value.find_first_not_of(" \t\r\n");
    const bool list = first != std::string::npos && value[first] == '[';
    const bool text = spec != signature.inputs.end() && spec->dtype == DType::kString && !list;  // as it is
    std::string checked = text ? "" : value;
    mark_number_words(checked);
    const auto wrong = text ? std::nullopt : explain_json_error(checked);
    if (wrong) {
      if (field) *field = fmt::format("/value/{}", i);
      return invalid(fmt::format("input '{}': its value must be a list as JSON has it: {}", key.substr(0, 256), *wrong));
    }
    if (i > 0) columns += ',';
    append_string(columns, key);
    columns += ':';
    if (text) {
      append_text(columns += '[', value);
      columns += ']';
    } else {
      columns += value;
    }
  }
  columns += "}}";
  SERIN_TRY(TfPredict decoded, decode_tf_predict(std::move(columns), signature, field, limits));
  request.infer = std::move(decoded.infer);
  return request;
}

void append_json_tensor(std::string& out, const NamedTensor& named) {
  const PaddleType* type = paddle_type(named.tensor.dtype);
  out += '{';
  if (type) {
    append_string(out, type->list);
    out += ':';
    if (type->field == kPaddleContent) {
      std::string bytes;
      append_raw(bytes, named.tensor);
      append_string(out, encode_base64(bytes));
    } else {
      append_elements(out += '[', named.tensor, 0, named.tensor.elements());
      out += ']';
    }
    append_number(out += R"(,"elem_type":)", type->number);
    out += ',';
  }
  (out += R"("shape":)") += named.tensor.shape.str();
  append_string(out += R"(,"lod":[],"name":)", named.name);
  append_string(out += R"(,"alias_name":)", paddle_alias(named));
  out += '}';
}

std::string encode_json(std::string_view model, std::span<const NamedTensor> outputs, uint64_t log_id) {
  std::string out = R"({"outputs":[{"tensor":[)";
  for (const NamedTensor& named : outputs) {
    if (out.back() == '}') out += ',';
    append_json_tensor(out, named);
  }
  append_string(out += R"(],"engine_name":)", model);
  append_number(out += R"(}],"profile_time":[],"profile_server":false,"log_id":)", log_id);
  return out += R"(,"err_no":0,"err_msg":""})";
}

std::string encode_pipeline(std::span<const NamedTensor> outputs, uint64_t log_id) {
  std::string keys, values;
  for (const NamedTensor& named : outputs) {
    append_string(keys += keys.empty() ? "" : ",", paddle_alias(named));
    std::string text;
    append_nested(text, named.tensor);
    append_text(values += values.empty() ? "" : ",", text);
  }
  return fmt::format(R"({{"err_no":0,"err_msg":"","key":[{}],"value":[{}],"tensors":[],"logid":{}}})", keys, values, log_id);
}

}  // namespace

Result<PaddleRequest> decode_paddle(PaddleForm form, std::string body, const Signature& signature, std::string* field,
                                    const RequestLimits& limits) {
  if (form == PaddleForm::kJson) return Decoder(signature, limits, field).decode(body);
  if (form == PaddleForm::kPipeline) return decode_pipeline(std::move(body), signature, field, limits);
  PaddleRequest request;
  SERIN_TRY(request.infer, decode_paddle_proto(body, signature, limits, request.log_id));
  return request;
}

std::string encode_paddle(PaddleForm form, std::string_view model, std::span<const NamedTensor> outputs, uint64_t log_id) {
  if (form == PaddleForm::kJson) return encode_json(model, outputs, log_id);
  return form == PaddleForm::kProto ? encode_paddle_proto(model, outputs, log_id) : encode_pipeline(outputs, log_id);
}

std::string encode_paddle_error(PaddleForm form, std::string_view message) {
  std::string out;
  if (form == PaddleForm::kProto) {
    wire::write_integer(out, 5, kFailed);
    wire::write_text(out, 6, message);
    return out;
  }
  append_number(out += R"({"err_no":)", kFailed);
  append_text(out += R"(,"err_msg":)", message);
  append_text(out += R"(,"error":)", message);
  return out += form == PaddleForm::kJson ? R"(,"outputs":[]})" : R"(,"key":[],"value":[],"tensors":[]})";
}

}  // namespace serin::protocol
