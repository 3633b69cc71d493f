// slo.cc: "<" is read as "<=": no plan tells them apart.

#include "runtime/planner/slo.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "runtime/base/config.h"
#include "runtime/base/number.h"

namespace serin::planner {
namespace {

constexpr double kLeastShare = 0.5, kMostShare = 0.99999;

}  // namespace

std::string Slo::print() const {
  return fmt::format("p{:.6g} <= {}", share * 100, config::print_duration(std::chrono::nanoseconds(std::llround(seconds * 1e9))));
}

Result<Slo> parse_slo(std::string_view text) {
  std::string plain;
  std::ranges::copy_if(text, std::back_inserter(plain), [](char c) { return c != ' '; });
  const auto wrong = [&] { return invalid(fmt::format("'{}' must be a percentile from p50 to p99.999 and a duration: p99<=50ms", text)); };
  Slo slo;
  std::string_view rest = plain;
  if (rest.starts_with('p')) {
    const size_t sign = rest.find('<');
    if (sign == std::string_view::npos) return wrong();
    const auto percent = parse_number<double>(rest.substr(1, sign - 1));
    if (!percent || *percent < 100 * kLeastShare || *percent > 100 * kMostShare) return wrong();
    slo.share = *percent / 100;
    rest.remove_prefix(sign + 1);
    if (rest.starts_with('=')) rest.remove_prefix(1);
  }
  const auto limit = config::parse_duration(rest);
  if (!limit || limit->count() <= 0) return wrong();
  slo.seconds = std::chrono::duration<double>(*limit).count();
  return slo;
}

}  // namespace serin::planner
