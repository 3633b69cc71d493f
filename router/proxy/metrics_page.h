// metrics_page.h: Reads single numbers from a page of metrics in Prometheus' text format.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace serin::router {

/// The value of each of these names: the sum over all its labels. Nothing: the page does not have it, or has NaN for it. Lines that are not
/// understood are skipped.
std::vector<std::optional<double>> read_metrics(std::string_view page, std::span<const std::string_view> names);

}  // namespace serin::router
