// sealed_file.h: A file of records that are encrypted and authenticated (AES-256-GCM, NIST SP 800-38D), each with a nonce of its own.
//
// The place of a record, the number of records and `purpose` are authenticated as well. So a file is refused if its records are swapped, left
// out, cut off, or come from another file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::router {

using SealingKey = std::array<unsigned char, 32>;

/// A file with the base64 of 32 random bytes, which only its owner may read. No error message contains the key.
Result<SealingKey> read_sealing_key(const std::string& path);

/// The whole file replaces `path` in one step, readable by its owner only.
Status write_sealed(const std::string& path, const SealingKey& key, std::string_view purpose, const std::vector<std::string>& records);
/// kNotFound; kCorrupt: damaged, or sealed with another key or for another purpose.
Result<std::vector<std::string>> read_sealed(const std::string& path, const SealingKey& key, std::string_view purpose);

}  // namespace serin::router
