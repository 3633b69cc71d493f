// spec_words.h: the words of a specification that the reader (spec.cc) and the printer (spec_print.cc) must spell alike.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace serin::rollout {

/// Latency quantiles that may carry a threshold.
inline constexpr std::pair<std::string_view, double> kQuantileWords[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}};

/// 0.999 -> "p99.9"
std::string quantile_word(double quantile);
/// 50000 -> "5", 2500 -> "0.25": percent without the sign, as parse_weight reads it.
std::string print_weight(uint32_t ppm);

}  // namespace serin::rollout
