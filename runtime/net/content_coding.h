// content_coding.h: bytes that are packed for their journey. Unpacking has a limit, because few bytes can stand for very many; packing is for speed, not for size.
//
//   const auto coding = preferred_coding("gzip;q=0.5, zstd");        // kZstd
//   if (coding) if (auto packed = pack(*coding, body)) ...
//
// Each thread keeps what zlib and zstd work with: that alone is 256 KiB a body.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/memory_budget.h"
#include "runtime/base/result.h"

namespace serin::net {

enum class Coding : uint8_t { kGzip, kDeflate, kZstd };
inline constexpr std::string_view kCodings = "gzip, deflate, zstd";

/// As content-encoding and grpc-encoding name them.
std::optional<Coding> parse_coding(std::string_view name);
std::string_view coding_name(Coding coding);
/// What the header Accept-Encoding likes best of kCodings; nothing where it asks for none of them by name.
std::optional<Coding> preferred_coding(std::string_view accept_encoding);

/// kCorrupt, kTooLarge (over `limit` bytes once unpacked).
Result<std::string> unpack(Coding coding, std::string_view bytes, size_t limit);
/// Whose memory what comes out is, `beside` bytes that it has already.
struct UnpackMemory {
  MemoryBudget::Share& share;
  const std::shared_ptr<MemoryBudget>& budget;
  size_t beside = 0;
};
/// The same; the share grows with what comes out. kOverloaded: the budget has no more.
Result<std::string> unpack(Coding coding, std::string_view bytes, size_t limit, const UnpackMemory& memory);
/// Nothing where it would save nothing.
std::optional<std::string> pack(Coding coding, std::string_view bytes);

}  // namespace serin::net
