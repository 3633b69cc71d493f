// crc32c.h: the checksum of tables and tensors (Castagnoli's polynomial), masked as LevelDB does.
#pragma once

#include <cstdint>

#include "runtime/base/wire.h"

namespace serin::formats::tf {

uint32_t crc32c(wire::Bytes bytes);

/// Files keep the checksum rotated and shifted: a checksum of data that contains checksums would be weak.
inline uint32_t masked_crc32c(wire::Bytes bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

}  // namespace serin::formats::tf
