// answers.h: what the answer of any inference protocol says, for whoever looks at one or compares two.
//
//   protocol::AnswerReader reader;                                         // keeps its memory: once warm, reading allocates nothing
//   if (reader.read({body, json_bytes}, {.output = "scores"}) == Reading::kOutputs)
//     for (const AnswerOutput& output : reader.outputs()) ...              // names and shapes of all, the numbers of the one that is wanted
//
// Open Inference Protocol v2 (JSON, binary tensors after the JSON, gRPC, and Triton's generate), TensorFlow Serving's REST API (rows, columns, classify, regress), Paddle
// Serving (the C++ server's tensors and the pipeline's texts). Which one it is shows in the answer itself. The text is walked once and not copied
// where it is padded; numbers that nobody asks for are stepped over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "kernels/tensor.h"

namespace serin::protocol {

/// What may be read behind a padded body, whatever stands there.
inline constexpr size_t kPadding = 64;

struct AnswerBody {
  std::string_view bytes;
  std::optional<size_t> json_bytes;  ///< the header Inference-Header-Content-Length: binary tensors follow
  bool padded = false;               ///< kPadding bytes behind it may be read; otherwise it is copied
  bool call = false;                 ///< of gRPC: one ModelInferResponse, with the five bytes before it

  bool binary() const { return call || json_bytes; }
};

/// Whose numbers are wanted, and which of them.
struct Wanted {
  enum class Values : uint8_t {
    kNone,
    kRow,  ///< of one row: those along the last axis
    kAll
  };
  std::string_view output;  ///< empty: the first one's
  Values values = Values::kAll;
  uint64_t random = 0;  ///< picks the row
};

struct AnswerOutput {
  std::string_view name, datatype;
  Shape shape;
  std::span<const double> values;  ///< where they are wanted; none of texts
  uint64_t texts = 0;              ///< digest of texts and of bytes that are no numbers; 0: numbers
};

enum class Reading : uint8_t {
  kOutputs,
  kFailed,  ///< it says that the inference failed (err_no of Paddle), or holds NaN or an infinity
  kForeign  ///< of no protocol known here
};

class AnswerReader {
 public:
  AnswerReader();
  ~AnswerReader();
  Reading read(const AnswerBody& answer, const Wanted& wanted);

  // After kOutputs, until the next read().
  std::span<const AnswerOutput> outputs() const;
  const AnswerOutput* wanted() const;  ///< null: there is no such output

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Elements along the last axis; a tensor without one has rows of one.
inline size_t row_width(const Shape& shape) { return shape.is_scalar() || shape.back() < 1 ? 1 : static_cast<size_t>(shape.back()); }

}  // namespace serin::protocol
