// paddle_values.cc: sides have a limit, since pictures of such sizes are allocated later.

#include "runtime/steps/vision/paddle_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace serin::steps {

namespace {

constexpr int64_t kLargestPaddleSide = 16384;
constexpr int64_t kAll = 1'000'000;

}  // namespace

Result<int> side_of(const config::Node& node) {
  SERIN_TRY(const int64_t side, node.integer(1, kLargestPaddleSide));
  return static_cast<int>(side);
}

Result<int> side_of(const config::Node& settings, std::string_view key, int fallback) {
  const auto node = settings.find(key);
  return node ? side_of(*node) : Result<int>(fallback);
}

Result<std::vector<int>> sides_of(const config::Node& node, size_t count) {
  const std::vector<config::Node> items = node.items();
  if (items.size() != count) return node.error(fmt::format("must be a list of {} numbers", count));
  std::vector<int> sides;
  for (const config::Node& item : items) {
    SERIN_TRY(const int side, side_of(item));
    sides.push_back(side);
  }
  return sides;
}

/// "224", or "[width, height]".
Result<Size> size_of(const config::Node& node) {
  if (node.is_scalar()) {
    SERIN_TRY(const int side, side_of(node));
    return Size{side, side};
  }
  SERIN_TRY(const std::vector<int> sides, sides_of(node, 2));
  return Size{sides[0], sides[1]};
}

/// "[height, width]".
Result<Size> turned_size_of(const config::Node& node) {
  SERIN_TRY(const Size size, size_of(node));
  return Size{size.height, size.width};
}

Result<std::vector<float>> channels_of(const config::Node& settings, std::string_view key, std::vector<float> fallback) {
  const auto node = settings.find(key);
  if (!node) return fallback;
  std::vector<float> numbers;
  for (const config::Node& item : node->items()) {
    SERIN_TRY(const double number, item.number(-1e6, 1e6));
    numbers.push_back(static_cast<float>(number));
  }
  if (numbers.empty() || numbers.size() > 4) return node->error("must be a list of a number for each channel");
  if (key == "std" && std::ranges::find(numbers, 0.F) != numbers.end()) return node->error("must not be 0");
  return numbers;
}

Result<std::vector<std::string>> texts_of(const config::Node& node) {
  if (!node.is_list()) return node.error("must be a list");
  std::vector<std::string> texts;
  for (const config::Node& item : node.items()) {
    SERIN_TRY(std::string text, item.text());
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<float> share_of(const config::Node& settings, std::string_view key, double fallback) {
  SERIN_TRY(const double value, settings.number(key, 0, 1, fallback));
  return static_cast<float>(value);
}

Result<int> count_of(const config::Node& settings, std::string_view key, int64_t fallback) {
  SERIN_TRY(const int64_t value, settings.integer(key, -1, kAll, fallback));
  return static_cast<int>(value < 0 ? kAll : value);  // -1: all
}

Status read_operation(std::span<const PaddleOperation> operations, std::string_view name, const config::Node& settings,
                      PaddleExport& model) {
  const auto found = std::ranges::find(operations, name, &PaddleOperation::name);
  if (found != operations.end()) return found->read(settings, model);
  std::string known;
  for (const PaddleOperation& operation : operations) known += (known.empty() ? "" : ", ") + std::string(operation.name);
  return settings.error(fmt::format("the operation '{}' is not supported; supported are {}", name, known));
}

}  // namespace serin::steps
