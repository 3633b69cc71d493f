// spec_parts.h: Helpers that the readers (spec_read.cc, spec_steps.cc) and the printer (spec_print.cc) of a specification share. Internal.
#pragma once

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "router/rollout/spec.h"

namespace serin::rollout {

/// Latency quantiles that may carry a threshold.
inline constexpr std::pair<std::string_view, double> kQuantileWords[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}};

/// 0.999 -> "p99.9"
std::string quantile_word(double quantile);
/// 50000 -> "5", 2500 -> "0.25": percent without the sign, as parse_weight reads it.
std::string print_weight(uint32_t ppm);

/// In double quotes, as YAML reads it back.
std::string in_quotes(std::string_view text);
/// The `slices:` of a guard; print_slices() writes them.
void read_slices(const config::Node& node, Guard& guard, config::Problems& problems);
std::string print_slices(const std::vector<Slice>& slices);
/// Names of headers are compared without case: lower case here.
void read_header(const config::Node& node, std::string& name, config::Problems& problems);

/// service, stable, canary with its baseline, sticky and cohort.
void read_traffic(const config::Node& document, Spec& spec, config::Problems& problems);
/// {header: x-user} or {cookie: session}
void read_sticky(const config::Node& node, Sticky& sticky, config::Problems& problems);
/// Whether a request can carry a header or cookie of that name.
bool is_token(std::string_view name);
/// Reads `guard: {resources: ...}`, and prints it.
void read_resources(const config::Node& node, ResourceGuard& guard, config::Problems& problems);
std::string print_resources(const ResourceGuard& guard);
/// Reads `steps:` into spec.steps, and a promotion into spec.bake.
void read_steps(const config::Node& list, Spec& spec, config::Problems& problems);
Result<uint32_t> weight_of(const config::Node& node);
Result<std::chrono::nanoseconds> positive_duration(const config::Node& node);
/// Refuses keys outside the list; planned keys are refused by name.
void check_keys(const config::Node& node, std::initializer_list<std::string_view> keys, std::initializer_list<std::string_view> unsupported,
                config::Problems& problems);

}  // namespace serin::rollout
