// npz_inflate.h: decompresses a member of an .npz archive. Internal to runtime/datasets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/datasets/stored_file.h"

namespace serin::datasets {

/// A member as the directory of its archive describes it.
struct Deflated {
  std::string name;
  uint64_t begin = 0, compressed = 0, size = 0;  ///< place and bytes in the archive; bytes once decompressed
  uint32_t crc = 0;
};

/// The contents of a member in a file without a name, so that any block of them can be read. kCorrupt: they are not what the archive says,
/// or larger than DEFLATE can make of it. kIo: there is no room, for one.
Result<std::unique_ptr<const StoredFile>> inflate_member(const StoredFile& archive, const Deflated& member);

}  // namespace serin::datasets
