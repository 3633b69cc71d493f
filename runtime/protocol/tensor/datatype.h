// datatype.h: the Open Inference Protocol's names for element types, and Serin's own headers with structured values.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/tensor.h"
#include "runtime/base/result.h"

namespace serin::protocol {

/// "FP32", "INT64", "BOOL", "BYTES" ...; empty for kUndefined.
std::string_view oip_datatype(DType dtype);
/// "an FP32", "a BOOL": for messages.
std::string with_article(DType dtype);
std::optional<DType> parse_oip_datatype(std::string_view name);
/// Returns the protocol's name for a type name of NumPy, PyTorch or TensorFlow, or for a misspelled name. Empty: no name is near.
std::string_view nearest_oip_datatype(std::string_view word);

/// `x-serin-batch: <boot>-<seq>/<i>/<n>`: the batch that computed an answer, the request's place in it and the batch's live requests.
struct BatchTag {
  uint64_t boot = 0;  ///< random, one for each start of the process
  uint64_t seq = 0;
  uint32_t i = 0, n = 1;
};
/// The tag in its printed form.
class BatchTagText {
 public:
  explicit BatchTagText(const BatchTag& tag);
  operator std::string_view() const { return {text_.data(), size_}; }  // NOLINT(google-explicit-constructor): it is a text

 private:
  std::array<char, 64> text_;
  size_t size_;
};
inline BatchTagText print_batch_tag(const BatchTag& tag) { return BatchTagText(tag); }
std::optional<BatchTag> parse_batch_tag(std::string_view text);

/// Parses the header kTimeHeader of a request: the time left to answer it, in whole milliseconds from 1 to those of a day.
/// kInvalidArgument, naming the header.
inline constexpr std::string_view kTimeHeader = "x-serin-timeout-ms";
Result<std::chrono::milliseconds> parse_time_left(std::string_view text);

}  // namespace serin::protocol
