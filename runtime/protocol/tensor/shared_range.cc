#include "runtime/protocol/tensor/shared_range.h"

#include <fmt/format.h>

#include "runtime/protocol/tensor/raw_tensor.h"

namespace serin::protocol {
namespace {

/// What cannot be copied as it is: texts have lengths between them, and not every byte is a BOOL.
bool is_parsed(DType dtype) { return dtype == DType::kString || dtype == DType::kBool; }

}  // namespace

Result<SharedRangePtr> open_shared(const SharedRegions* regions, const SharedParameters& parameters, std::string_view tensor) {
  if (!regions)
    return Error{Code::kUnsupported, fmt::format("{}: this server takes no tensors from shared memory (--shared-memory)", tensor)};
  if (parameters.bytes.value_or(0) < 1 || parameters.offset.value_or(0) < 0)
    return Error{
        Code::kInvalidArgument,
        fmt::format("{}: 'shared_memory_byte_size' must be a number of bytes, 'shared_memory_offset' one that is not negative", tensor)};
  auto range =
      regions->open(parameters.region, static_cast<uint64_t>(parameters.offset.value_or(0)), static_cast<uint64_t>(*parameters.bytes));
  if (!range) return range.error().in(tensor);
  return range;
}

Status check_shared(const SharedRange& range, const TensorView& tensor, std::string_view name, size_t limit) {
  if (tensor.dtype == DType::kString) {
    if (range.bytes <= limit) return {};
    return Error{Code::kTooLarge, fmt::format("input '{}': {} bytes of shared memory; the limit is {}", name, range.bytes, limit)};
  }
  if (range.bytes == raw_bytes(tensor)) return {};
  return Error{
      Code::kInvalidArgument,
      fmt::format("unexpected total byte size {} for input '{}', expecting {}: 'shared_memory_byte_size' must be what shape {} takes",
                  range.bytes, name, raw_bytes(tensor), tensor.shape.str())};
}

Status read_shared(const SharedRange& range, const TensorView& tensor, std::string_view name) {
  if (!is_parsed(tensor.dtype)) return range.read({static_cast<std::byte*>(tensor.data), range.bytes});
  std::string bytes(range.bytes, '\0');
  SERIN_CHECK(range.read(std::as_writable_bytes(std::span(bytes))));
  SERIN_CHECK(check_raw(bytes, tensor, name));
  read_raw(bytes, tensor);
  return {};
}

Status write_shared(const SharedRange& range, const TensorView& tensor, std::string_view name) {
  const size_t needed = raw_bytes(tensor);
  if (needed > range.bytes)
    return Error{Code::kInvalidArgument,
                 fmt::format("shared memory size specified with the request for output '{}' should be at least {} bytes, it is {}", name,
                             needed, range.bytes)};
  if (tensor.dtype != DType::kString) return range.write({static_cast<const char*>(tensor.data), needed});
  std::string bytes;
  append_raw(bytes, tensor);
  return range.write(bytes);
}

}  // namespace serin::protocol
