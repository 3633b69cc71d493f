// answers_grpc.cc: reads a gRPC message that is a ModelInferResponse of the Open Inference Protocol. answers_tensorflow_grpc.cc has the others.
//
//   outputs = 5 {name = 1, datatype = 2, shape = 3, contents = 5 {one field for each kind of element}}, raw_output_contents = 6
//
// The elements are in each output's contents or, as servers write them, all at the end: one field of bytes for each output, in their order.
// They are never in both. FP16 and BF16 come only that way. A compressed message cannot be read here.

#include <cmath>

#include "runtime/base/wire.h"
#include "runtime/protocol/answers/answer_state.h"
#include "runtime/protocol/answers/digest.h"

namespace serin::protocol {
namespace {

constexpr uint32_t kOutputs = 5, kRawContents = 6;                       // of ModelInferResponse
constexpr uint32_t kName = 1, kDatatype = 2, kShape = 3, kContents = 5;  // of InferOutputTensor
enum Contents : uint32_t { kBool = 1, kInt32, kInt64, kUInt32, kUInt64, kFloat, kDouble, kBytes };

constexpr size_t kPrefixBytes = 5;  // compressed or not, and the length as four bytes

/// The message behind its prefix; nothing where it is compressed, cut off or followed by another one.
std::optional<std::string_view> only_message(std::string_view bytes) {
  if (bytes.size() < kPrefixBytes || bytes.front() != 0) return std::nullopt;
  uint32_t length = 0;
  for (size_t i = 1; i < kPrefixBytes; ++i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  bytes.remove_prefix(kPrefixBytes);
  return bytes.size() == length ? std::optional(bytes) : std::nullopt;
}

wire::Message response_in(std::string_view message, wire::Decoding& decoding) {
  const wire::Bytes bytes = std::as_bytes(std::span(message));
  decoding.begin = bytes.data();
  return {decoding, "ModelInferResponse", bytes};
}

}  // namespace

/// Whether elements stand in the outputs themselves: in some of them, or not in some that have any.
struct AnswerReader::State::Filling {
  bool some = false, none = false;
};

bool AnswerReader::State::read_call(std::string_view bytes) {
  const auto message = only_message(bytes);
  if (!message) return false;
  size_t raw = 0;
  Filling filling;
  wire::Decoding decoding;
  wire::Message response = response_in(*message, decoding);
  while (response.next()) {
    if (response.field() == kRawContents) ++raw;
    if (response.field() == kOutputs && !read_output(response.message("InferOutputTensor"), filling)) return false;
  }
  if (decoding.error) return false;
  if (raw == 0 && outputs.empty() && is_tensorflow_call(*message)) return read_tensorflow_call(*message);
  return raw == 0 ? !filling.none : !filling.some && raw == outputs.size() && read_raw_contents(*message);
}

bool AnswerReader::State::read_output(wire::Message message, Filling& filling) {
  AnswerOutput output;
  std::optional<wire::Message> contents;
  bool fits = true;
  while (message.next()) {
    switch (message.field()) {
      case kName: output.name = message.chars(); break;
      case kDatatype: output.datatype = message.chars(); break;
      case kContents: contents = message.message("InferTensorContents"); break;
      case kShape:
        message.each_integer([&](int64_t size) {
          fits = fits && size >= 0 && Shape::fits(output.shape.rank() + 1);
          if (fits) output.shape.push_back(size);
        });
        break;
      default: break;
    }
  }
  if (message.decoding().error || !fits || output.name.empty() || output.datatype.empty()) return false;
  AnswerOutput& added = add(output);
  filling.some |= contents.has_value();
  filling.none |= !contents && output.shape.checked_elements() != 0;
  return !contents || read_contents(*contents, added, found == outputs.size() - 1);
}

bool AnswerReader::State::read_contents(wire::Message contents, AnswerOutput& output, bool mine) {
  const auto elements = output.shape.checked_elements();
  if (!elements) return false;
  const Range kept = range(mine).empty() ? Range() : row_of(output.shape, static_cast<size_t>(*elements));
  size_t count = 0;
  bool finite = true;
  const auto take = [&](auto number) {
    if (kept.holds(count++)) values.push_back(static_cast<double>(number));
    if constexpr (std::is_floating_point_v<decltype(number)>) finite &= std::isfinite(number);
  };
  while (contents.next()) {
    switch (contents.field()) {
      case kBool:
      case kInt32:
      case kInt64: contents.each_integer(take); break;
      case kUInt32:
      case kUInt64: contents.each_integer([&](int64_t bits) { take(static_cast<uint64_t>(bits)); }); break;
      case kFloat: contents.each_fixed<float>(take); break;
      case kDouble: contents.each_fixed<double>(take); break;
      case kBytes:
        output.texts = digest(output.texts, contents.chars());
        if (mine && wanted.strings) strings.push_back(contents.chars());
        ++count;
        break;
      default: break;
    }
  }
  if (contents.decoding().error || count != static_cast<size_t>(*elements)) return false;
  return finite || failed();
}

bool AnswerReader::State::read_raw_contents(std::string_view message) {
  size_t at = 0;
  wire::Decoding decoding;
  wire::Message response = response_in(message, decoding);
  while (response.next()) {
    if (response.field() != kRawContents) continue;
    if (!read_raw(outputs[at], response.chars(), found == at)) return false;
    ++at;
  }
  return !decoding.error;
}

}  // namespace serin::protocol
