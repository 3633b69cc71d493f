// serve_anything.h: what a fuzzer asks of a whole server: any call at any of its doors, orders included, of a model with an input of every kind.
#pragma once

#include <string_view>

namespace serin::fuzz {

/// The first byte chooses: h a request over HTTP, a line each for method and target, lines of headers, an empty one, the body; t the same of a server that
/// answers as Triton; g a call of gRPC, its path in a line, its messages framed as the wire has them.
/// Each is answered, and h never with 500.
void serve_anything(std::string_view input);

}  // namespace serin::fuzz
