// answer_state.cc: recognises the protocol of an answer, and reads what the protocols share: outputs, lists, elements.

#include "runtime/protocol/answers/answers.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/protocol/answers/answer_state.h"
#include "runtime/protocol/answers/digest.h"

namespace serin::protocol {
namespace {

namespace ondemand = simdjson::ondemand;

bool holds(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

}  // namespace

static_assert(kPadding >= simdjson::SIMDJSON_PADDING);

AnswerReader::AnswerReader() : state_(std::make_unique<State>()) {}
AnswerReader::~AnswerReader() = default;
Reading AnswerReader::read(const AnswerBody& answer, const Wanted& wanted) { return state_->read(answer, wanted); }
std::span<const AnswerOutput> AnswerReader::outputs() const { return state_->outputs; }
const AnswerOutput* AnswerReader::wanted() const { return state_->found ? &state_->outputs[*state_->found] : nullptr; }

bool is_not_finite(std::string_view token) {
  if (token.starts_with('-')) token.remove_prefix(1);
  return token.starts_with("NaN") || token.starts_with("Infinity");
}

Reading AnswerReader::State::read(const AnswerBody& answer, const Wanted& what) {
  wanted = what;
  outputs.clear();
  values.clear();
  strings.clear();
  keys.clear();
  texts.clear();
  found.reset();
  end = Reading::kForeign;
  tail = {};
  if (!(answer.call ? read_call(answer.bytes) : read_text(answer))) return end;
  if (found) {
    AnswerOutput& output = outputs[*found];
    const Range row = row_of(output.shape, values.size());  // one row already, where its place was known in time
    output.values = std::span<const double>(values).subspan(row.first, row.last - row.first);
    output.strings = strings;
  }
  return Reading::kOutputs;
}

/// JSON, and perhaps binary tensors behind it.
bool AnswerReader::State::read_text(const AnswerBody& answer) {
  std::string_view json = answer.bytes;
  if (answer.json_bytes) {
    if (*answer.json_bytes > json.size()) return false;
    tail = json.substr(*answer.json_bytes);
    json = json.substr(0, *answer.json_bytes);
  }
  every_number = holds(json, "NaN") || holds(json, "Infinity");
  return read_root(json, answer.padded) && tail.empty();
}

bool AnswerReader::State::read_root(std::string_view json, bool padded) {
  if (json.empty()) return false;
  if (!padded) {
    copy.reserve(json.size() + kPadding);
    json = copy.assign(json);
  }
  constexpr size_t kSmallest = 4096;
  if (json.size() > parser.capacity() && parser.allocate(std::bit_ceil(std::max(json.size(), kSmallest)))) return false;
  ondemand::document document;
  Object root;
  bool flat = false;
  if (parser.iterate(json, json.size() + kPadding).get(document) || document.get_object().get(root)) return false;
  bool known = false;
  for (auto each : root) {
    std::string_view key;
    Value value;
    if (!take_field(std::move(each), key, value)) return false;
    bool good = true;
    if (key == "outputs") {
      good = !std::exchange(known, true) && read_outputs(value);
    } else if (key == "predictions") {
      good = !std::exchange(known, true) && read_predictions(value);
    } else if (key == "results" || key == "result") {
      good = !std::exchange(known, true) && read_results(value);
    } else if (key == "model_version") {
      flat = true;
    } else if (key == "err_no") {
      int64_t number = 0;
      good = !value.get(number);
      if (number != 0) return failed();
    } else if (key == "key") {
      good = read_texts(value, keys);
    } else if (key == "value") {
      good = read_texts(value, texts);
    }
    if (!good) return false;
  }
  if (known || !keys.empty()) return known || read_pipeline();
  document.rewind();
  return flat && !document.get_object().get(root) && read_flat(root);
}

/// Of the Open Inference Protocol a list of objects, of Paddle another one, of TensorFlow an object of columns or the only column.
bool AnswerReader::State::read_outputs(Value& value) {
  Object columns;
  if (!value.get_object().get(columns)) return read_columns(columns);
  Array list;
  if (value.get_array().get(list)) return false;
  std::optional<ListTensor> column;
  for (auto each : list) {
    Value element;
    Object object;
    if (each.get(element)) return false;
    if (!column && !element.get_object().get(object)) {
      if (!read_output(object)) return false;
      continue;
    }
    if (!column) {
      if (!outputs.empty()) return false;
      AnswerOutput& only = add({.name = "outputs", .datatype = "FP64"});
      if (!column.emplace(only.shape, range(found.has_value())).open()) return false;
    }
    if (!read_lists(element, *column, outputs.front())) return false;
  }
  return !column || column->close();
}

AnswerOutput& AnswerReader::State::add(const AnswerOutput& output) {
  if (is_wanted(output.name)) {
    found = outputs.size();
  } else if (!found) {
    values.clear();
    strings.clear();
  }
  return outputs.emplace_back(output);
}

Range AnswerReader::State::row_of(const Shape& shape, size_t elements) const {
  const size_t width = row_width(shape);
  if (wanted.values != Wanted::Values::kRow || elements <= width) return {0, elements};
  const size_t first = wanted.random % (elements / width) * width;
  return {first, first + width};
}

bool AnswerReader::State::read_column(std::string_view name, Value& value) {
  AnswerOutput& output = add({.name = name, .datatype = "FP64"});
  ListTensor tensor(output.shape, range(found == outputs.size() - 1));
  return read_lists(value, tensor, output);
}

bool AnswerReader::State::read_lists(Value& value, ListTensor& tensor, AnswerOutput& output) {
  Array list;
  if (value.get_array().get(list)) return read_element(value, tensor, output);
  if (!tensor.open()) return false;  // so it goes no deeper than a shape has axes
  for (auto each : list) {
    Value element;
    if (each.get(element) || !read_lists(element, tensor, output)) return false;
  }
  return tensor.close();
}

bool AnswerReader::State::read_element(Value& value, ListTensor& tensor, AnswerOutput& output) {
  if (!tensor.element()) return false;
  ondemand::json_type type;
  if (value.type().get(type)) return is_not_finite(value.raw_json_token()) ? failed() : false;
  switch (type) {
    case ondemand::json_type::number: {
      if (!tensor.wants_last() && !every_number) return true;
      double number = 0;
      if (value.get(number)) return is_not_finite(value.raw_json_token()) ? failed() : false;
      if (tensor.wants_last()) values.push_back(number);
      return true;
    }
    case ondemand::json_type::boolean: {
      bool truth = false;
      if (value.get(truth)) return false;
      if (tensor.wants_last()) values.push_back(truth ? 1 : 0);
      return true;
    }
    case ondemand::json_type::string:
      output.texts = digest(output.texts, value.raw_json_token());
      if (wanted.strings && tensor.wants_last() && value.get(strings.emplace_back())) return false;
      break;
    case ondemand::json_type::object: {
      Value text;  // TensorFlow's {"b64": "..."}
      if (value["b64"].get(text)) return false;
      output.texts = digest(output.texts, text.raw_json_token());
      if (wanted.strings && tensor.wants_last() && text.get(strings.emplace_back())) return false;
      break;
    }
    default: return false;
  }
  output.datatype = "BYTES";
  return true;
}

bool AnswerReader::State::read_shape(Value& value, Shape& shape) {
  Array dims;
  if (value.get_array().get(dims)) return false;
  for (auto dim : dims) {
    int64_t size = 0;
    if (dim.get(size) || size < 0 || !Shape::fits(shape.rank() + 1)) return false;
    shape.push_back(size);
  }
  return true;
}

}  // namespace serin::protocol
