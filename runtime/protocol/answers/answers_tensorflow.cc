// answers_tensorflow.cc: reads the answers of TensorFlow Serving's REST API.
//
//   predict    {"predictions": [[0.1, 0.9], ..]}                       one output: its rows
//              {"predictions": [{"a": [..], "b": 1}, ..]}               several: one object a row, each with a part of every output
//              {"outputs": {"a": [[..], ..], "b": [..]}}                in columns; read_outputs() has the one of a single output
//   classify   {"results": [[["cat", 0.7], ["dog", 0.3]], ..]}          its labels are texts, its scores numbers
//   regress    {"results": [0.3, ..]}                                   the documentation calls both "result", the code "results"

#include "runtime/protocol/answers/answer_state.h"
#include "runtime/protocol/answers/digest.h"

namespace serin::protocol {

bool AnswerReader::State::read_predictions(Value& value) {
  Array rows;
  if (value.get_array().get(rows)) return false;
  std::optional<ListTensor> only;
  size_t objects = 0;
  for (auto each : rows) {
    Value row;
    Object fields;
    if (each.get(row)) return false;
    if (!only && !row.get_object().get(fields)) {
      if (!read_row(fields, objects++)) return false;
      continue;
    }
    if (!only) {
      if (objects > 0) return false;
      AnswerOutput& output = add({.name = "predictions", .datatype = "FP64"});
      if (!only.emplace(output.shape, range(found.has_value())).open()) return false;
    }
    if (!read_lists(row, *only, outputs.front())) return false;
  }
  for (size_t i = 0; !only && i < outputs.size(); ++i) outputs[i].shape[0] = static_cast<int64_t>(objects);
  return !only || only->close();
}

bool AnswerReader::State::read_row(Object& row, size_t index) {
  size_t place = 0;
  for (auto each : row) {
    std::string_view name;
    Value value;
    if (!take_field(std::move(each), name, value)) return false;
    if (index == 0) add({.name = name, .datatype = "FP64", .shape = Shape{0}});
    if (place == outputs.size() || outputs[place].name != name) return false;
    AnswerOutput& output = outputs[place];
    ListTensor part(output.shape, range(found == place), /*depth=*/1, /*ranked=*/index > 0);
    if (!read_lists(value, part, output)) return false;
    ++place;
  }
  return place == outputs.size();
}

bool AnswerReader::State::read_columns(Object& columns) {
  for (auto each : columns) {
    std::string_view name;
    Value value;
    if (!take_field(std::move(each), name, value) || !read_column(name, value)) return false;
  }
  return true;
}

bool AnswerReader::State::read_results(Value& value) {
  AnswerOutput& output = add({.name = "results", .datatype = "FP64"});
  ListTensor tensor(output.shape, range(found.has_value()));
  Array examples;
  if (value.get_array().get(examples) || !tensor.open()) return false;
  for (auto each : examples) {
    Value example;
    Array classes;
    if (each.get(example)) return false;
    if (example.get_array().get(classes)) {
      if (!read_element(example, tensor, output)) return false;
      continue;
    }
    if (!tensor.open()) return false;
    for (auto pair : classes) {
      Value scored;
      if (pair.get(scored) || !read_class(scored, tensor, output)) return false;
    }
    if (!tensor.close()) return false;
  }
  return tensor.close();
}

/// ["cat", 0.7]
bool AnswerReader::State::read_class(Value& value, ListTensor& tensor, AnswerOutput& output) {
  Array pair;
  size_t place = 0;
  if (value.get_array().get(pair)) return false;
  for (auto each : pair) {
    Value part;
    std::string_view label;
    if (each.get(part)) return false;
    if (place == 0) {
      if (part.get(label)) return false;
      output.texts = digest(output.texts, label);
      if (wanted.strings && found) strings.push_back(label);
    } else if (place > 1 || !read_element(part, tensor, output)) {
      return false;
    }
    ++place;
  }
  return place == 2;
}

}  // namespace serin::protocol
