// doors_anything.h: any bytes as a request of TensorFlow Serving's (JSON and gRPC) or Paddle Serving's (JSON, protobuf, pipeline).
#pragma once

#include <string_view>

namespace serin::fuzz {

/// The first byte says which: p, c, r: predict, classify, regress as JSON; P, C, R, M: the same over gRPC, and MultiInference; j, b, t: Paddle's JSON, protobuf
/// and texts. Aborts where a request that is accepted does not come back bit by bit.
void doors_anything(std::string_view input);

}  // namespace serin::fuzz
