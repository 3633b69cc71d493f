// infer_anything.h: what a fuzzer asks of the codecs of inference: requests over REST, as JSON and as bytes behind it, and over gRPC.
#pragma once

#include <string_view>

namespace serin::fuzz {

/// The first byte chooses: j JSON; b a length of two bytes, JSON of that length, and what is behind it; r the bytes of the only input; g a message of gRPC; n JSON for Triton's generate.
/// A request that is accepted must come back the same once its tensors were sent on as bytes, and as JSON where JSON has words for them.
void infer_anything(std::string_view input);

}  // namespace serin::fuzz
