// answers.h: reads the answer of any inference protocol, for code that inspects or compares answers.
//
//   protocol::AnswerReader reader;                                         // keeps its memory: later reads allocate nothing
//   if (reader.read({body, json_bytes}, {.output = "scores"}) == Reading::kOutputs)
//     for (const AnswerOutput& output : reader.outputs()) ...              // names and shapes of all, the numbers of the requested one
//
// It reads three families of protocols and recognises the protocol from the answer itself:
// - Open Inference Protocol v2: JSON, binary tensors after the JSON, gRPC, and Triton's generate
// - TensorFlow Serving, over REST (rows, columns, classify, regress) and gRPC (Predict, Classify, Regress)
// - Paddle Serving: the C++ server's tensors and the pipeline's texts
//
// The text is read once and, if it is padded, not copied. Numbers that are not requested are skipped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "kernels/tensor.h"

namespace serin::protocol {

/// Bytes after a padded body that may be read, whatever their value.
inline constexpr size_t kPadding = 64;

struct AnswerBody {
  std::string_view bytes;
  std::optional<size_t> json_bytes;  ///< the header Inference-Header-Content-Length: binary tensors follow
  bool padded = false;               ///< kPadding bytes after it may be read; otherwise it is copied
  bool call = false;                 ///< from gRPC: one message, with the five bytes before it

  bool binary() const { return call || json_bytes; }
};

/// Names the output whose numbers are requested, and which of them.
struct Wanted {
  enum class Values : uint8_t {
    kNone,
    kRow,  ///< the numbers of one row: those along the last axis
    kAll
  };
  std::string_view output;  ///< empty: the first output
  Values values = Values::kAll;
  uint64_t random = 0;   ///< selects the row
  bool strings = false;  ///< its texts as well, with kAll
};

struct AnswerOutput {
  std::string_view name, datatype;
  Shape shape;
  std::span<const double> values;  ///< set if requested; empty for texts
  uint64_t texts = 0;              ///< digest of texts and of bytes that are not numbers; 0: numbers
  /// Its texts, one for each element, or one for each score of TensorFlow's classify. Set if requested; empty where they are not told apart.
  std::span<const std::string_view> strings;
};

enum class Reading : uint8_t {
  kOutputs,
  kFailed,  ///< the inference failed (err_no of Paddle), or the answer contains NaN or an infinity
  kForeign  ///< not a known protocol
};

class AnswerReader {
 public:
  AnswerReader();
  ~AnswerReader();
  Reading read(const AnswerBody& answer, const Wanted& wanted);

  // Valid after kOutputs, until the next read().
  std::span<const AnswerOutput> outputs() const;
  const AnswerOutput* wanted() const;  ///< null: no such output

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Number of elements along the last axis; a tensor without axes has rows of one.
inline size_t row_width(const Shape& shape) { return shape.is_scalar() || shape.back() < 1 ? 1 : static_cast<size_t>(shape.back()); }

}  // namespace serin::protocol
