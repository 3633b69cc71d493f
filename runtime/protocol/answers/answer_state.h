// answer_state.h: the state of an AnswerReader while it reads an answer. Internal to runtime/protocol; every protocol has its own .cc file.
//
// Functions return false if reading ends before the end of the text. The reason is a form that no protocol here has (`end` stays kForeign),
// or a failed inference (kFailed).
#pragma once

#include <simdjson.h>

#include <string>
#include <vector>

#include "runtime/base/wire.h"
#include "runtime/protocol/answers/answers.h"
#include "runtime/protocol/tensor/list_tensor.h"

namespace serin::protocol {

/// Whether a message of gRPC is an answer of TensorFlow's PredictionService.
bool is_tensorflow_call(std::string_view message);

/// Whether the token is NaN or an infinity, which servers write although JSON has no such values.
bool is_not_finite(std::string_view token);

/// Takes the next field of an object. False: the object is malformed from here on.
inline bool take_field(simdjson::simdjson_result<simdjson::ondemand::field> each, std::string_view& name,
                       simdjson::ondemand::value& value) {
  simdjson::ondemand::field field;
  if (std::move(each).get(field) || field.unescaped_key().get(name)) return false;
  value = field.value();
  return true;
}

struct AnswerReader::State {
  using Value = simdjson::ondemand::value;
  using Object = simdjson::ondemand::object;
  using Array = simdjson::ondemand::array;

  Reading read(const AnswerBody& answer, const Wanted& what);

  // answer_state.cc: shared by the protocols.
  bool read_text(const AnswerBody& answer);
  bool read_root(std::string_view json, bool padded);
  bool read_outputs(Value& value);
  bool failed() {
    end = Reading::kFailed;
    return false;
  }
  /// Adds an output and invalidates the reference that add() returned before. Drops numbers that were kept for an output that turns out not
  /// to be requested.
  AnswerOutput& add(const AnswerOutput& output);
  bool is_wanted(std::string_view name) const { return !found && (wanted.output.empty() || wanted.output == name); }
  Range range(bool is_wanted) const { return is_wanted && wanted.values != Wanted::Values::kNone ? Range::all() : Range(); }
  /// The elements of the requested row, or of all rows if all are requested.
  Range row_of(const Shape& shape, size_t elements) const;
  bool read_column(std::string_view name, Value& value);  ///< an output that only its lists describe
  bool read_lists(Value& value, ListTensor& tensor, AnswerOutput& output);
  bool read_element(Value& value, ListTensor& tensor, AnswerOutput& output);
  static bool read_shape(Value& value, Shape& shape);

  struct Parts;
  bool read_output(Object& object);  // answers_open_inference.cc
  bool read_flat(Object& root);
  bool read_part(std::string_view key, Value& value, Parts& parts);
  static bool check(const Parts& parts);
  bool read_binary(AnswerOutput& output, uint64_t size, bool mine);
  /// Reads elements in their memory layout. `mine`: this is the requested output.
  bool read_raw(AnswerOutput& output, std::string_view bytes, bool mine);
  void keep_strings(std::string_view bytes);  ///< BYTES in binary form: each with its length before it

  struct Filling;
  bool read_call(std::string_view bytes);  // answers_grpc.cc
  bool read_output(wire::Message message, Filling& filling);
  bool read_contents(wire::Message contents, AnswerOutput& output, bool mine);
  bool read_raw_contents(std::string_view message);

  bool read_tensorflow_call(std::string_view message);  // answers_tensorflow_grpc.cc
  bool read_predict(wire::Message response);
  bool read_proto(wire::Message proto, AnswerOutput& output);
  size_t read_proto_texts(wire::Message proto, AnswerOutput& output, bool mine);
  bool read_numbers(wire::Message proto, uint32_t list, bool is_fp16, size_t elements, const Shape& shape, bool mine);
  bool read_scores(wire::Message result);
  size_t read_example(wire::Message example, bool is_number, AnswerOutput& output);

  bool read_predictions(Value& value);  // answers_tensorflow.cc
  bool read_row(Object& row, size_t index);
  bool read_columns(Object& columns);
  bool read_results(Value& value);
  bool read_class(Value& value, ListTensor& tensor, AnswerOutput& output);

  bool read_tensors(Value& value);  // answers_paddle.cc
  bool read_tensor(Object& object);
  static bool read_texts(Value& value, std::vector<std::string_view>& texts);
  bool read_pipeline();
  bool read_printed(std::string_view text, ListTensor& tensor);

  simdjson::ondemand::parser parser;
  std::string copy;  // copy of a text without padding
  Wanted wanted;
  bool every_number = false;  // the text may contain NaN or Infinity, so that every number must be read
  Reading end = Reading::kForeign;
  std::string_view tail;  // binary tensors that are not read yet
  std::vector<AnswerOutput> outputs;
  std::vector<double> values;                                     // values of the requested output
  std::vector<std::string_view> strings;                          // its texts
  std::optional<size_t> found;                                    // index of the requested output
  std::vector<std::string_view> keys, texts;                      // for Paddle's pipeline
  std::vector<std::pair<std::string_view, wire::Bytes>> entries;  // of TensorFlow's PredictResponse: outputs by name
};

}  // namespace serin::protocol
