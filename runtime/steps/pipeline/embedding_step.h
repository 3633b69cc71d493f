// embedding_step.h: from the vectors of a text's tokens to one vector of the text.
//
//   post:
//     - embedding: last_hidden_state       the model's output, [tokens, width] for one row
//       pooling: mean
//       normalize: true
#pragma once

#include <memory>
#include <string>

#include "runtime/base/config.h"
#include "runtime/steps/pipeline/step.h"

namespace serin::steps {

struct EmbeddingSettings {
  /// As sentence-transformers names them. kMean and kMax leave padding out; kFirst is the vector of [CLS].
  enum class Pooling : uint8_t { kMean, kFirst, kMax };

  std::string output, name = "embedding";  ///< the model's output and the clients'
  Pooling pooling = Pooling::kMean;
  bool normalize = false;  ///< to the Euclidean length 1

  friend bool operator==(const EmbeddingSettings&, const EmbeddingSettings&) = default;
};

/// Reads an item of `post`. Errors name file, line and key.
Result<EmbeddingSettings> read_embedding_step(const config::Node& node);

/// `model`: its outputs. The one that it reads is of numbers and has two axes, or one if it is a vector of the text already.
Result<std::shared_ptr<const PostStep>> make_embedding_step(EmbeddingSettings settings, std::span<const TensorFacts> model);

}  // namespace serin::steps
