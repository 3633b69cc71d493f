// How many positions a window takes along an axis:
//
//   floor((size + pad_begin + pad_end - ((kernel - 1) * dilation + 1)) / stride) + 1        ceil with ceil_mode, where the last one must
//                                                                                           start inside the input or its begin padding
// auto_pad: SAME_* pads so that the count is ceil(size / stride); the odd element goes to the end (UPPER) or the beginning (LOWER).

#include "runtime/graph/ops/window.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "runtime/graph/ops/infer.h"

namespace serin::graph {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();  // of a size or padding: kernels index with less than 64 bits

template <class... Args>
Error refuse(fmt::format_string<Args...> format, Args&&... args) {
  return {Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...)};
}

Result<std::vector<int64_t>> positive_list(const Node& node, std::string_view key, size_t count) {
  std::vector<int64_t> list = node.integers(key);
  if (list.empty()) list.assign(count, 1);
  if (list.size() != count) return refuse("{} has {} elements for {} spatial axes", key, list.size(), count);
  for (const int64_t each : list) {
    if (each < 1 || each > kMost) return refuse("{} has {}, it must be 1 to {}", key, each, kMost);
  }
  return list;
}

Result<std::vector<int64_t>> explicit_pads(const Node& node, size_t count) {
  std::vector<int64_t> pads = node.integers("pads");
  if (pads.empty()) pads.assign(2 * count, 0);
  if (pads.size() != 2 * count) return refuse("pads has {} elements, {} spatial axes need {}", pads.size(), count, 2 * count);
  for (const int64_t each : pads) {
    if (each < 0 || each > kMost) return refuse("pads has {}, it must be 0 to {}", each, kMost);
  }
  return pads;
}

/// Padding so that the result has ceil(size / stride) positions.
std::pair<int64_t, int64_t> same_pads(int64_t size, int64_t stride, int64_t extent, bool upper) {
  const int64_t positions = (size + stride - 1) / stride;
  const int64_t total = std::max<int64_t>(0, (positions - 1) * stride + extent - size);
  const int64_t half = total / 2;
  return upper ? std::pair(half, total - half) : std::pair(total - half, half);
}

}  // namespace

Result<Window> resolve_window(const Node& node, std::span<const Dim> spatial, std::vector<int64_t> kernel) {
  const size_t count = spatial.size();
  Window window;
  window.kernel = std::move(kernel);
  if (window.kernel.empty()) {
    if (!node.attributes.contains("kernel_shape")) return refuse("attribute 'kernel_shape' is missing");
    SERIN_TRY(window.kernel, positive_list(node, "kernel_shape", count));
  }
  SERIN_TRY(window.strides, positive_list(node, "strides", count));
  SERIN_TRY(window.dilations, positive_list(node, "dilations", count));
  const std::string auto_pad = node.text("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID") return refuse("auto_pad '{}' is unknown", auto_pad);
  if (auto_pad == "NOTSET") {
    SERIN_TRY(window.pads, explicit_pads(node, count));
  } else {
    window.pads.assign(2 * count, 0);
  }
  const bool ceil_mode = node.integer("ceil_mode", 0) != 0;

  bool pads_known = true;
  for (size_t i = 0; i < count; ++i) {
    const int64_t stride = window.strides[i];
    const int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const auto size = spatial[i].value();
    if (same) {
      window.output.push_back(ceil_div(spatial[i], stride));
      if (size)
        std::tie(window.pads[i], window.pads[count + i]) = same_pads(*size, stride, extent, auto_pad == "SAME_UPPER");
      else
        pads_known = false;
      continue;
    }
    const int64_t padding = window.pads[i] + window.pads[count + i];
    if (size && *size + padding < extent)
      return refuse("a kernel that covers {} does not fit spatial axis {} of {} with padding {}", extent, i, *size, padding);
    const Dim steps = spatial[i] + Dim(padding - extent);
    Dim positions = (ceil_mode ? ceil_div(steps, stride) : floor_div(steps, stride)) + Dim(1);
    if (ceil_mode && size && (*positions.value() - 1) * stride >= *size + window.pads[i]) positions = positions - Dim(1);
    window.output.push_back(positions);
  }
  if (!pads_known) window.pads.clear();
  return window;
}

namespace {

/// The spatial part of output_shape: some exporters write batch and channels, too.
Result<std::vector<int64_t>> wanted_output(const Node& node, size_t count) {
  std::vector<int64_t> sizes = node.integers("output_shape");
  if (sizes.size() == count + 2) sizes.erase(sizes.begin(), sizes.begin() + 2);
  if (!sizes.empty() && sizes.size() != count) return refuse("output_shape has {} elements for {} spatial axes", sizes.size(), count);
  for (const int64_t each : sizes) {
    if (each < 1 || each > kMost) return refuse("output_shape has {}, it must be 1 to {}", each, kMost);
  }
  return sizes;
}

Result<std::vector<int64_t>> output_padding(const Node& node, const Window& window) {
  std::vector<int64_t> padding = node.integers("output_padding");
  if (padding.empty()) padding.assign(window.kernel.size(), 0);
  if (padding.size() != window.kernel.size())
    return refuse("output_padding has {} elements for {} spatial axes", padding.size(), window.kernel.size());
  for (size_t i = 0; i < padding.size(); ++i) {
    const int64_t limit = std::max(window.strides[i], window.dilations[i]);
    if (padding[i] < 0 || padding[i] >= limit) return refuse("output_padding {} is not within 0 to {}", padding[i], limit - 1);
  }
  return padding;
}

}  // namespace

Result<Window> resolve_transposed_window(const Node& node, std::span<const Dim> spatial, std::vector<int64_t> kernel) {
  const size_t count = spatial.size();
  Window window;
  window.kernel = std::move(kernel);
  SERIN_TRY(window.strides, positive_list(node, "strides", count));
  SERIN_TRY(window.dilations, positive_list(node, "dilations", count));
  SERIN_TRY(const std::vector<int64_t> extra, output_padding(node, window));
  SERIN_TRY(const std::vector<int64_t> wanted, wanted_output(node, count));
  const std::string auto_pad = node.text("auto_pad", "NOTSET");
  const bool upper = auto_pad == "SAME_UPPER", same = upper || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID") return refuse("auto_pad '{}' is unknown", auto_pad);
  window.pads.assign(2 * count, 0);
  if (auto_pad == "NOTSET" && wanted.empty()) {
    SERIN_TRY(window.pads, explicit_pads(node, count));
  }

  bool pads_known = true;
  for (size_t i = 0; i < count; ++i) {
    const int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const Dim full = (spatial[i] - Dim(1)) * Dim(window.strides[i]) + Dim(extra[i] + extent);  // without pads
    if (wanted.empty() && !same) {
      window.output.push_back(full - Dim(window.pads[i] + window.pads[count + i]));
      if (spatial[i].known() && *window.output.back().value() < 1)
        return refuse("pads leave nothing of spatial axis {}: it would be {}", i, window.output.back().str());
      continue;
    }
    window.output.push_back(wanted.empty() ? spatial[i] * Dim(window.strides[i]) : Dim(wanted[i]));
    const auto total = (full - window.output.back()).value();
    pads_known &= total.has_value();
    const int64_t padding = std::max<int64_t>(0, total.value_or(0)), half = padding / 2;
    window.pads[i] = upper ? half : padding - half;
    window.pads[count + i] = upper ? padding - half : half;
  }
  if (!pads_known) window.pads.clear();
  return window;
}

}  // namespace serin::graph
