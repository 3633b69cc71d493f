// content_coding.h: compresses and decompresses bodies and messages.
//
// Decompression has a limit, because few bytes can expand to very many. Compression is tuned for speed, not for size.
//
//   const auto coding = preferred_coding("gzip;q=0.5, zstd");        // kZstd
//   if (coding) if (auto packed = pack(*coding, body)) ...
//
// Each thread keeps the state of zlib and zstd, which would otherwise be 256 KiB for each body.
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

/// Names as in content-encoding and grpc-encoding.
std::optional<Coding> parse_coding(std::string_view name);
std::string_view coding_name(Coding coding);
/// Returns the coding of kCodings that the header Accept-Encoding prefers; nothing if it names none of them.
std::optional<Coding> preferred_coding(std::string_view accept_encoding);

/// Decompresses. kCorrupt, kTooLarge (over `limit` bytes when decompressed).
Result<std::string> unpack(Coding coding, std::string_view bytes, size_t limit);
/// The budget for decompressed bytes; `beside`: bytes that the share has already.
struct UnpackMemory {
  MemoryBudget::Share& share;
  const std::shared_ptr<MemoryBudget>& budget;
  size_t beside = 0;
};
/// The same; the share grows with the decompressed bytes. kOverloaded: the budget is exhausted.
Result<std::string> unpack(Coding coding, std::string_view bytes, size_t limit, const UnpackMemory& memory);
/// Compresses; returns nothing if that saves nothing.
std::optional<std::string> pack(Coding coding, std::string_view bytes);

}  // namespace serin::net
