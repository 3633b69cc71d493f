// shared_range.h: the codecs' view of tensors in memory that a client shares with the server: a part of a region that the client named.
//
// Data is copied once and at once, because the client may write to the memory at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/tensor.h"
#include "runtime/base/result.h"

namespace serin::protocol {

class SharedRange {
 public:
  SharedRange(std::string of, uint64_t from, uint64_t count) : region(std::move(of)), offset(from), bytes(count) {}
  virtual ~SharedRange() = default;
  /// These transfer all bytes of the range, or the first ones. Errors: the memory is smaller than when it was registered.
  virtual Status read(std::span<std::byte> into) const = 0;
  virtual Status write(std::string_view from) const = 0;

  const std::string region;
  const uint64_t offset, bytes;
};
using SharedRangePtr = std::shared_ptr<const SharedRange>;

class SharedRegions {
 public:
  virtual ~SharedRegions() = default;
  /// kNotFound: no such region; kInvalidArgument: outside the region; kUnsupported: shared memory is disabled.
  virtual Result<SharedRangePtr> open(std::string_view region, uint64_t offset, uint64_t bytes) const = 0;
};

/// The parameters of a tensor in shared memory.
struct SharedParameters {
  std::string_view region;
  std::optional<int64_t> offset, bytes;
  bool given() const { return region.data() != nullptr; }
};
/// `regions` null: this server accepts none. `tensor` is for messages: "input 'x'".
Result<SharedRangePtr> open_shared(const SharedRegions* regions, const SharedParameters& parameters, std::string_view tensor);

/// Checks that it has the size of the tensor's shape; for BYTES, that it is within `limit`.
Status check_shared(const SharedRange& range, const TensorView& tensor, std::string_view name, size_t limit);
/// Memory for BYTES elements that read_shared() reads: it has all bytes in memory before it splits them.
inline size_t shared_text_bytes(const SharedRange& range) { return 2 * range.bytes; }
/// Reads into the tensor's memory. Requires check_shared().
Status read_shared(const SharedRange& range, const TensorView& tensor, std::string_view name);
/// kInvalidArgument if it is too small.
Status write_shared(const SharedRange& range, const TensorView& tensor, std::string_view name);

}  // namespace serin::protocol
