// datatype.h: the names the Open Inference Protocol has for element types, and the headers of ours that carry more than a word.
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
/// The protocol's word for what is no word of it: of the same type in NumPy, PyTorch or TensorFlow, or mistyped. Empty: none is near.
std::string_view nearest_oip_datatype(std::string_view word);

/// `x-serin-batch: <boot>-<seq>/<i>/<n>`: the batch an answer rode in, its place in it and the live requests of the batch.
struct BatchTag {
  uint64_t boot = 0;  ///< random, one for each start of the process
  uint64_t seq = 0;
  uint32_t i = 0, n = 1;
};
/// As it is printed.
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

/// The header kTimeHeader of a request, the time that is left to answer it: a whole number of milliseconds, from 1 to those of a day. kInvalidArgument,
/// which names the header.
inline constexpr std::string_view kTimeHeader = "x-serin-timeout-ms";
Result<std::chrono::milliseconds> parse_time_left(std::string_view text);

}  // namespace serin::protocol
