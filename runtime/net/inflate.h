// inflate.h: bytes that were compressed for their journey, within a limit: few of them can stand for very many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::net {

enum class Coding : uint8_t { kGzip, kDeflate };

/// "gzip", "deflate": as content-encoding and grpc-encoding name them.
std::optional<Coding> parse_coding(std::string_view name);
/// kCorrupt, kTooLarge (over `limit` bytes once inflated).
Result<std::string> inflate(Coding coding, std::string_view bytes, size_t limit);

}  // namespace serin::net
