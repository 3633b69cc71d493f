// signatures.h: the models that fuzzers of requests ask.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/protocol/infer.h"

namespace serin::fuzz {

/// With an input of every type that the protocols have a word for; the one of texts is called `texts`.
inline protocol::Signature every_type(std::string texts, std::vector<protocol::TensorSpec> outputs) {
  return {"model 'm' version 1",
          {{"f", DType::kFloat32, {-1, 2}},
           {"d", DType::kFloat64, {-1}},
           {"h", DType::kFloat16, {-1}},
           {"b", DType::kBFloat16, {-1}},
           {"i", DType::kInt8, {-1}},
           {"u", DType::kUInt64, {-1}},
           {std::move(texts), DType::kString, {-1}},
           {"o", DType::kBool, {}, false}},
          std::move(outputs)};
}

/// With one input, whose name a request may leave out.
inline protocol::Signature one_input() {
  return {"model 'one' version 1", {{"f", DType::kFloat32, {-1, 2, -1}}}, {{"y", DType::kFloat32, {-1}}}};
}

}  // namespace serin::fuzz
