#include "runtime/protocol/tensor/raw_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "runtime/protocol/tensor/datatype.h"

namespace serin::protocol {

std::optional<std::string_view> take_text(std::string_view& bytes) {
  uint32_t length = 0;
  if (bytes.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes.remove_prefix(sizeof length);
  if (bytes.size() < length) return std::nullopt;
  const std::string_view text = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return text;
}

size_t raw_bytes(const TensorView& tensor) {
  if (tensor.dtype != DType::kString) return tensor.bytes();
  size_t bytes = 0;
  for (const std::string& text : tensor.span<const std::string>()) bytes += sizeof(uint32_t) + text.size();
  return bytes;
}

void append_raw(std::string& out, const TensorView& tensor) {
  if (tensor.dtype != DType::kString) {
    out.append(tensor.as<const char>(), tensor.bytes());
    return;
  }
  for (const std::string& text : tensor.span<const std::string>()) {
    const auto length = static_cast<uint32_t>(text.size());
    out.append(reinterpret_cast<const char*>(&length), sizeof length) += text;
  }
}

Status check_raw(std::string_view bytes, const TensorView& tensor, std::string_view name) {
  const auto mismatch = [&](const std::string& takes, const std::string& has) {
    return Error{Code::kInvalidArgument, fmt::format("input '{}': {} of shape {} takes {}, the request has {}", name,
                                                     oip_datatype(tensor.dtype), tensor.shape.str(), takes, has)};
  };
  if (tensor.dtype != DType::kString) {
    if (bytes.size() == tensor.bytes()) return {};
    return mismatch(fmt::format("{} bytes", tensor.bytes()), std::to_string(bytes.size()));
  }
  int64_t count = 0;
  for (std::string_view left = bytes; !left.empty(); ++count)
    if (!take_text(left)) return mismatch("elements after their lengths", fmt::format("element {} cut short", count));
  if (count == tensor.elements()) return {};
  return mismatch(fmt::format("{} elements", tensor.elements()), std::to_string(count));
}

void read_raw(std::string_view bytes, const TensorView& tensor) {
  if (tensor.dtype == DType::kString) {
    for (std::string& text : tensor.span<std::string>()) text = *take_text(bytes);
  } else if (tensor.dtype == DType::kBool) {
    std::ranges::transform(bytes, tensor.as<bool>(), [](char byte) { return byte != 0; });  // any other byte in a bool would be undefined
  } else {
    std::memcpy(tensor.data, bytes.data(), bytes.size());
  }
}

}  // namespace serin::protocol
