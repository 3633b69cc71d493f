// answers_tensorflow_grpc.cc: reads a gRPC message that is an answer of TensorFlow Serving's PredictionService.
//
//   PredictResponse          outputs = 1 {key = 1, value = 2: a TensorProto}; a map, whose order means nothing
//   ClassificationResponse   result = 1 {classifications = 1 {classes = 1 {label = 1, score = 2}}}
//   RegressionResponse       result = 1 {regressions = 1 {value = 1}}
//
// Messages do not say what they are. All of these begin with a message in a message, and so with its tag, where a ModelInferResponse has the name
// of its model: no name begins with the end of a line, which that tag is. An entry of the map has a second field, a result has none. A regression
// has a number where classes have a message.
//
// The numbers of a TensorProto are bytes or a list of its type. A list may be shorter than its shape: its last number then fills the rest.

#include <algorithm>
#include <cmath>

#include "kernels/float16.h"
#include "runtime/base/wire.h"
#include "runtime/protocol/answers/answer_state.h"
#include "runtime/protocol/answers/digest.h"

namespace serin::protocol {
namespace {

constexpr char kTagOfFirst = '\n';                                             // field 1, with a length
constexpr char kTagOfNumber = '\x0d';                                          // field 1, four bytes
constexpr size_t kMostRepeated = 1 << 20;                                      // elements
constexpr uint32_t kFloats = 5, kDoubles = 6, kHalves = 13, kUnsigned64 = 17;  // lists of a TensorProto

/// Of TensorFlow's DataType: the name that other protocols have for it, and the list that its elements come in.
struct ListedType {
  int64_t number;
  std::string_view datatype;
  uint32_t list;
};
constexpr ListedType kListedTypes[] = {{1, "FP32", 5},    {2, "FP64", 6},   {3, "INT32", 7},    {4, "UINT8", 7},   {5, "INT16", 7},
                                       {6, "INT8", 7},    {7, "BYTES", 8},  {9, "INT64", 10},   {10, "BOOL", 11},  {14, "BF16", 13},
                                       {17, "UINT16", 7}, {19, "FP16", 13}, {22, "UINT32", 16}, {23, "UINT64", 17}};

wire::Message message_in(wire::Decoding& decoding, std::string_view bytes) {
  const wire::Bytes span = std::as_bytes(std::span(bytes));
  decoding.begin = span.data();
  return {decoding, "answer", span};
}

/// The first field 1 of it; empty: there is none.
std::string_view first_in(std::string_view bytes) {
  wire::Decoding decoding;
  for (wire::Message message = message_in(decoding, bytes); message.next();)
    if (message.field() == 1) return message.chars();
  return {};
}

/// False: there is no such shape.
bool read_proto_shape(wire::Message message, Shape& shape) {
  while (message.next()) {
    if (message.field() != 2) continue;
    int64_t size = 0;
    wire::Message dim = message.message("Dim");
    while (dim.next())
      if (dim.field() == 1) size = dim.integer();
    if (size < 0 || !Shape::fits(shape.rank() + 1)) return false;
    shape.push_back(size);
  }
  return true;
}

bool has_second_field(std::string_view bytes) {
  wire::Decoding decoding;
  for (wire::Message message = message_in(decoding, bytes); message.next();)
    if (message.field() == 2) return true;
  return false;
}

}  // namespace

bool is_tensorflow_call(std::string_view message) { return first_in(message).starts_with(kTagOfFirst); }

bool AnswerReader::State::read_tensorflow_call(std::string_view message) {
  const std::string_view first = first_in(message);
  wire::Decoding decoding;
  wire::Message response = message_in(decoding, message);
  if (has_second_field(first)) return read_predict(response) && !decoding.error;
  while (response.next())
    if (response.field() == 1) return read_scores(response.message("result")) && !decoding.error;
  return false;
}

/// Sorted by their names, so that the first one is the same one for every server.
bool AnswerReader::State::read_predict(wire::Message response) {
  entries.clear();
  while (response.next()) {
    if (response.field() != 1) continue;
    auto& [name, tensor] = entries.emplace_back();
    wire::Message entry = response.message("entry");
    while (entry.next()) {
      if (entry.field() == 1) name = entry.chars();
      if (entry.field() == 2) tensor = entry.bytes();
    }
  }
  wire::Decoding& decoding = response.decoding();
  if (decoding.error) return false;
  std::ranges::sort(entries, {}, &std::pair<std::string_view, wire::Bytes>::first);
  for (const auto& [name, bytes] : entries)
    if (!read_proto({decoding, "TensorProto", bytes}, add({.name = name}))) return false;
  return true;
}

bool AnswerReader::State::read_proto(wire::Message proto, AnswerOutput& output) {
  int64_t number = 0;
  wire::Bytes content;
  bool fits = true;
  for (wire::Message in = proto; in.next();) {
    if (in.field() == 1) number = in.integer();
    if (in.field() == 2) fits = read_proto_shape(in.message("TensorShapeProto"), output.shape);
    if (in.field() == 4) content = in.bytes();
  }
  const auto type = std::ranges::find(kListedTypes, number, &ListedType::number);
  const auto elements = output.shape.checked_elements();
  if (proto.decoding().error || !fits || type == std::end(kListedTypes) || !elements) return false;
  output.datatype = type->datatype;
  const bool mine = found == outputs.size() - 1;
  if (!content.empty()) return read_raw(output, {reinterpret_cast<const char*>(content.data()), content.size()}, mine);
  if (type->datatype == "BYTES") return read_proto_texts(proto, output, mine) == static_cast<size_t>(*elements);
  return read_numbers(proto, type->list, type->datatype == "FP16", static_cast<size_t>(*elements), output.shape, mine);
}

size_t AnswerReader::State::read_proto_texts(wire::Message proto, AnswerOutput& output, bool mine) {
  constexpr uint32_t kTexts = 8;
  size_t count = 0;
  while (proto.next()) {
    if (proto.field() != kTexts) continue;
    output.texts = digest(output.texts, proto.chars());
    if (mine && wanted.strings) strings.push_back(proto.chars());
    ++count;
  }
  return count;
}

bool AnswerReader::State::read_numbers(wire::Message proto, uint32_t list, bool is_fp16, size_t elements, const Shape& shape, bool mine) {
  const Range kept = range(mine).empty() ? Range() : row_of(shape, elements);
  size_t count = 0;
  double last = 0;
  bool finite = true;
  const auto take = [&](auto number) {
    last = static_cast<double>(number);
    finite &= std::isfinite(last);
    if (kept.holds(count++)) values.push_back(last);
  };
  while (proto.next()) {
    if (proto.field() != list) continue;
    switch (list) {
      case kFloats: proto.each_fixed<float>(take); break;
      case kDoubles: proto.each_fixed<double>(take); break;
      case kHalves:
        proto.each_integer([&](int64_t number) {
          const auto bits = static_cast<uint16_t>(number);
          take(is_fp16 ? kernels::to_float(kernels::Half{bits}) : kernels::to_float(kernels::BFloat16{bits}));
        });
        break;
      case kUnsigned64: proto.each_integer([&](int64_t bits) { take(static_cast<uint64_t>(bits)); }); break;
      default: proto.each_integer(take); break;
    }
  }
  if (proto.decoding().error || count > elements || elements - count > kMostRepeated) return false;
  while (count < elements) take(last);
  return finite || failed();
}

/// Of Classify and Regress, as answers over REST have them: one output, and labels as its texts.
bool AnswerReader::State::read_scores(wire::Message result) {
  AnswerOutput& output = add({.name = "results", .datatype = "FP32"});
  int64_t examples = 0;
  std::optional<size_t> width;  // classes of an example; nothing: regressions
  for (; result.next(); ++examples) {
    if (result.field() != 1) return false;
    const std::string_view bytes = result.chars();
    const bool is_number = bytes.empty() || bytes.starts_with(kTagOfNumber);
    const size_t scores = read_example({result.decoding(), "example", std::as_bytes(std::span(bytes))}, is_number, output);
    if (examples > 0 && (is_number == width.has_value() || (width && width != scores))) return false;
    if (!is_number) width = scores;
  }
  output.shape.push_back(examples);
  if (width) output.shape.push_back(static_cast<int64_t>(*width));
  return end != Reading::kFailed;
}

/// How many scores it has.
size_t AnswerReader::State::read_example(wire::Message example, bool is_number, AnswerOutput& output) {
  const bool kept = !range(found.has_value()).empty();
  const auto take = [&](float score) {
    if (!std::isfinite(score)) failed();
    if (kept) values.push_back(score);
  };
  if (is_number) {
    float value = 0;  // which is not written
    while (example.next())
      if (example.field() == 1) value = example.number();
    take(value);
    return 1;
  }
  size_t classes = 0;
  for (; example.next(); ++classes) {
    float score = 0;
    std::string_view label;
    wire::Message one = example.message("Class");
    while (one.next()) {
      if (one.field() == 1) label = one.chars();
      if (one.field() == 2) score = one.number();
    }
    output.texts = digest(output.texts, label);
    if (wanted.strings && kept) strings.push_back(label);
    take(score);
  }
  return classes;
}

}  // namespace serin::protocol
