// answers_paddle.cc: reads the answers of Paddle Serving.
//
//   C++ server   {"outputs": [{"tensor": [{"float_data": [..], "shape": [..], "alias_name": "scores"}]}], "err_no": 0}     a name comes last
//   pipeline     {"err_no": 0, "key": ["scores"], "value": ["[[0.1, 0.9]]"]}                                        as Python prints them
//
// err_no reports an error, with status 200.

#include <charconv>
#include <cmath>

#include "runtime/protocol/answers/answer_state.h"
#include "runtime/protocol/answers/digest.h"

namespace serin::protocol {
namespace {

bool is_list_of_elements(std::string_view key) {
  for (const std::string_view known : {"float_data", "int64_data", "int_data", "float64_data", "uint32_data", "bool_data", "data"})
    if (key == known) return true;
  return false;
}

}  // namespace

bool AnswerReader::State::read_tensors(Value& value) {
  Array tensors;
  if (value.get_array().get(tensors)) return false;
  for (auto each : tensors) {
    Object tensor;
    if (each.get_object().get(tensor) || !read_tensor(tensor)) return false;
  }
  return true;
}

bool AnswerReader::State::read_tensor(Object& object) {
  AnswerOutput output{.datatype = "FP64"};
  std::string_view alias;
  bool shaped = false;
  Shape list;
  size_t elements = 0;
  for (auto each : object) {
    std::string_view key;
    Value value;
    if (!take_field(std::move(each), key, value)) return false;
    bool good = true;
    if (key == "name") {
      good = !value.get(output.name);
    } else if (key == "alias_name") {
      good = !value.get(alias);
    } else if (key == "shape") {
      shaped = good = read_shape(value, output.shape);
    } else if (key == "tensor_content") {  // raw bytes of a type that JSON has no numbers for
      std::string_view bytes;
      good = !value.get(bytes);
      if (!bytes.empty()) output.texts = digest(output.texts, bytes);
    } else if (is_list_of_elements(key)) {
      list = Shape();
      ListTensor tensor(list, range(!found));  // its name is still to come
      good = read_lists(value, tensor, output) && list.rank() == 1;
      elements += tensor.elements();
    }
    if (!good) return false;
  }
  if (!alias.empty()) output.name = alias;
  if (output.name.empty()) return false;
  if (output.texts != 0) output.datatype = "BYTES";
  if (!shaped) output.shape = Shape{static_cast<int64_t>(elements)};
  if (output.texts == 0 && output.shape.checked_elements() != static_cast<int64_t>(elements)) return false;
  add(output);
  return true;
}

bool AnswerReader::State::read_texts(Value& value, std::vector<std::string_view>& texts) {
  Array list;
  if (value.get_array().get(list)) return false;
  for (auto each : list)
    if (each.get(texts.emplace_back())) return false;
  return true;
}

bool AnswerReader::State::read_pipeline() {
  if (keys.size() != texts.size()) return false;
  for (size_t i = 0; i < keys.size(); ++i) {
    AnswerOutput output{.name = keys[i], .datatype = "FP64"};
    const size_t before = values.size();
    ListTensor tensor(output.shape, range(is_wanted(output.name)));
    if (!read_printed(texts[i], tensor)) {
      if (end == Reading::kFailed) return false;
      values.resize(before);  // a text that only begins like a tensor
      output = {.name = keys[i], .datatype = "BYTES", .texts = digest(0, texts[i])};
      if (wanted.strings && is_wanted(output.name)) strings.assign(1, texts[i]);
    }
    add(output);
  }
  return true;
}

/// [[0.25, 0.75]], or [[0.25 0.75]\n [0.5 0.5]] of an array of NumPy's. False: a text and no tensor.
bool AnswerReader::State::read_printed(std::string_view text, ListTensor& tensor) {
  size_t depth = 0;
  while (!text.empty()) {
    const char c = text.front();
    if (c == '[' || c == ']') {
      if (c == '[' ? !tensor.open() : depth == 0 || !tensor.close()) return false;
      depth += c == '[' ? 1 : -1;
    } else if (c != ' ' && c != ',' && c != '\n') {
      double number = 0;
      const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
      text.remove_prefix(static_cast<size_t>(rest - text.data()));
      const bool ends = text.empty() || std::string_view(" ,]\n").find(text.front()) != std::string_view::npos;  // "nan", but not "Nancy"
      if (failure != std::errc() || !ends || !tensor.element()) return false;
      if (!std::isfinite(number)) return failed();
      if (tensor.wants_last()) values.push_back(number);
      continue;
    }
    text.remove_prefix(1);
    if (depth == 0 && tensor.elements() > 0) break;
  }
  return depth == 0 && tensor.elements() > 0 && text.find_first_not_of(" \n") == std::string_view::npos;
}

}  // namespace serin::protocol
