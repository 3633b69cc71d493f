// answer_state.h: an answer while it is read. Internal to runtime/protocol: every protocol has its .cc file.
//
// Functions return false where reading ends before the end of the text: at what no protocol here has (`end` stays kForeign), or at what says that
// the inference failed (kFailed).
#pragma once

#include <simdjson.h>

#include <string>
#include <vector>

#include "runtime/base/wire.h"
#include "runtime/protocol/answers/answers.h"
#include "runtime/protocol/tensor/list_tensor.h"

namespace serin::protocol {

/// NaN and infinities, as servers write them though JSON has no such thing.
bool is_not_finite(std::string_view token);

/// Of an object that is walked. False: it is malformed from here on.
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

  // answers.cc: what the protocols share.
  bool read_text(const AnswerBody& answer);
  bool read_root(std::string_view json, bool padded);
  bool read_outputs(Value& value);
  bool failed() {
    end = Reading::kFailed;
    return false;
  }
  /// One more output; what add() returned before is void. Numbers that were kept in case they were the wanted ones are dropped where they are not.
  AnswerOutput& add(const AnswerOutput& output);
  bool is_wanted(std::string_view name) const { return !found && (wanted.output.empty() || wanted.output == name); }
  Range range(bool is_wanted) const { return is_wanted && wanted.values != Wanted::Values::kNone ? Range::all() : Range(); }
  /// The elements of the row that is asked for; of all rows where that is asked for.
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
  /// Its elements as they lie in memory. `mine`: it is the wanted one.
  bool read_raw(AnswerOutput& output, std::string_view bytes, bool mine);

  struct Filling;
  bool read_call(std::string_view bytes);  // answers_grpc.cc
  bool read_output(wire::Message message, Filling& filling);
  bool read_contents(wire::Message contents, AnswerOutput& output, bool mine);
  bool read_raw_contents(std::string_view message);

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
  std::string copy;  // of a text without padding
  Wanted wanted;
  bool every_number = false;  // somewhere stands NaN or Infinity, or a word that looks like it: no number may be stepped over
  Reading end = Reading::kForeign;
  std::string_view tail;  // binary tensors that are not read yet
  std::vector<AnswerOutput> outputs;
  std::vector<double> values;                 // of the wanted output
  std::optional<size_t> found;                // its index
  std::vector<std::string_view> keys, texts;  // of Paddle's pipeline
};

}  // namespace serin::protocol
