// table.h: reads a sorted table of keys and values, as LevelDB writes it (variables.index).
#pragma once

#include <functional>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/wire.h"

namespace serin::formats::tf {

/// Calls `take` for each entry, in order; a key lives only during the call, a value as long as `file`. kCorrupt: a wrong magic, length or
/// checksum, or keys out of order. kUnsupported: compressed blocks, which TensorFlow does not write.
Status read_table(wire::Bytes file, const std::function<Status(std::string_view key, wire::Bytes value)>& take);

}  // namespace serin::formats::tf
