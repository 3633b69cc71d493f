// shared_range.h: tensors that lie in memory which a client shares with the server, as codecs see it: a part of a region that the client named.
//
// Whatever is read is copied once, at once: the client may write to it all the time.
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
  /// As many bytes as it has, or the first so many. Errors: the memory has become smaller than it was registered.
  virtual Status read(std::span<std::byte> into) const = 0;
  virtual Status write(std::string_view from) const = 0;

  const std::string region;
  const uint64_t offset, bytes;
};
using SharedRangePtr = std::shared_ptr<const SharedRange>;

class SharedRegions {
 public:
  virtual ~SharedRegions() = default;
  /// kNotFound: no such region; kInvalidArgument: not within it; kUnsupported: none are taken.
  virtual Result<SharedRangePtr> open(std::string_view region, uint64_t offset, uint64_t bytes) const = 0;
};

/// What a request says of a tensor in shared memory.
struct SharedParameters {
  std::string_view region;
  std::optional<int64_t> offset, bytes;
  bool given() const { return region.data() != nullptr; }
};
/// `regions` null: this server takes none. `tensor` is for messages: "input 'x'".
Result<SharedRangePtr> open_shared(const SharedRegions* regions, const SharedParameters& parameters, std::string_view tensor);

/// Whether it has the size that the tensor's shape takes; of BYTES whether it is not over `limit`.
Status check_shared(const SharedRange& range, const TensorView& tensor, std::string_view name, size_t limit);
/// What elements of BYTES take that read_shared() will read: it has all bytes at hand before it cuts them up.
inline size_t shared_text_bytes(const SharedRange& range) { return 2 * range.bytes; }
/// Into the tensor's memory. Requires check_shared().
Status read_shared(const SharedRange& range, const TensorView& tensor, std::string_view name);
/// kInvalidArgument where it is too small.
Status write_shared(const SharedRange& range, const TensorView& tensor, std::string_view name);

}  // namespace serin::protocol
