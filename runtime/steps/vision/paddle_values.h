// paddle_values.h: settings that several operations on pictures have. Internal to runtime/steps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/result.h"
#include "runtime/steps/vision/paddle_model.h"

namespace serin::steps {

/// From 1 to 16384.
Result<int> side_of(const config::Node& node);
Result<int> side_of(const config::Node& settings, std::string_view key, int fallback);
Result<std::vector<int>> sides_of(const config::Node& node, size_t count);

/// A number for both sides, or a list [width, height]; turned: [height, width].
Result<Size> size_of(const config::Node& node);
Result<Size> turned_size_of(const config::Node& node);

/// From 1 to 4 numbers; those of `std` are not 0.
Result<std::vector<float>> channels_of(const config::Node& settings, std::string_view key, std::vector<float> fallback);

/// The texts of a list.
Result<std::vector<std::string>> texts_of(const config::Node& list);

/// From 0 to 1.
Result<float> share_of(const config::Node& settings, std::string_view key, double fallback);
/// -1 stands for all, which is a million.
Result<int> count_of(const config::Node& settings, std::string_view key, int64_t fallback);

struct PaddleOperation {
  std::string_view name;
  Status (*read)(const config::Node& settings, PaddleExport& model);
};

/// Reads the one of that name; where there is none, an error that names those that there are.
Status read_operation(std::span<const PaddleOperation> operations, std::string_view name, const config::Node& settings,
                      PaddleExport& model);

}  // namespace serin::steps
