#include "runtime/cli/tools/compare_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <optional>

namespace serin::cli {
namespace {

namespace json = boost::json;
using protocol::TensorSpec;

/// The index of the partner among `others` of the tensor at `place` of `specs`.
std::optional<size_t> find_partner(std::span<const TensorSpec> specs, size_t place, std::span<const TensorSpec> others) {
  if (const auto named = place_of(others, specs[place].name)) return named;
  if (specs.size() == others.size() && !place_of(specs, others[place].name)) return place;
  return std::nullopt;
}

/// The largest number in a document.
double largest_number(const json::value& value) {
  double largest = 0;
  if (const auto* const list = value.if_array()) {
    for (const json::value& item : *list) largest = std::max(largest, largest_number(item));
  } else if (const auto* const object = value.if_object()) {
    for (const auto& member : *object) largest = std::max(largest, largest_number(member.value()));
  } else if (value.is_number()) {
    largest = std::abs(value.to_number<double>());
  }
  return largest;
}

/// `atol` is absolute.
bool same_json(const json::value& actual, const json::value& expected, double rtol, double atol) {
  if (actual.is_number() && expected.is_number()) {
    const double a = actual.to_number<double>(), b = expected.to_number<double>();
    return std::abs(a - b) <= rtol * std::abs(b) + atol;
  }
  if (actual.is_array() && expected.is_array())
    return std::ranges::equal(actual.get_array(), expected.get_array(),
                              [&](const json::value& a, const json::value& b) { return same_json(a, b, rtol, atol); });
  if (actual.is_object() && expected.is_object())
    return actual.get_object().size() == expected.get_object().size() &&
           std::ranges::all_of(expected.get_object(), [&](const auto& member) {
             const json::value* const other = actual.get_object().if_contains(member.key());
             return other != nullptr && same_json(*other, member.value(), rtol, atol);
           });
  return actual == expected;
}

/// Two texts with lists of boxes, which hold numbers as text.
bool same_document(const std::string& actual, const std::string& expected, const Tolerance& tolerance) {
  if (actual == expected) return true;
  const auto is_document = [](const std::string& text) { return text.starts_with('[') || text.starts_with('{'); };
  if (!is_document(actual) || !is_document(expected)) return false;
  boost::system::error_code first, second;
  const json::value a = json::parse(actual, first), b = json::parse(expected, second);
  if (first || second) return false;
  return same_json(a, b, tolerance.rtol, tolerance.atol * (tolerance.absolute_atol ? 1.0 : largest_number(b)));
}

Comparison compare_tensor(const TensorView& actual, const TensorView& expected, const Tolerance& tolerance) {
  Comparison found = compare(actual, expected, tolerance);
  const bool texts = actual.dtype == DType::kString && expected.dtype == DType::kString && actual.shape == expected.shape;
  if (found.match || !texts) return found;
  const auto a = actual.span<const std::string>(), b = expected.span<const std::string>();
  if (std::ranges::equal(a, b, [&](const std::string& x, const std::string& y) { return same_document(x, y, tolerance); }))
    return {.match = true};
  return found;
}

}  // namespace

std::optional<size_t> place_of(std::span<const TensorSpec> specs, std::string_view name) {
  const auto found = std::ranges::find(specs, name, &TensorSpec::name);
  return found == specs.end() ? std::nullopt : std::optional(static_cast<size_t>(found - specs.begin()));
}

std::vector<TensorDifference> compare_tensors(const NamedTensors& reference, const NamedTensors& candidate, const Tolerance& tolerance) {
  std::vector<TensorDifference> all;
  for (size_t i = 0; i < reference.specs.size(); ++i) {
    const auto partner = find_partner(reference.specs, i, candidate.specs);
    all.push_back({reference.specs[i].name, "",
                   partner ? compare_tensor(candidate.tensors[*partner], reference.tensors[i], tolerance)
                           : Comparison{.why_not = "only the reference has it"}});
  }
  for (size_t i = 0; i < candidate.specs.size(); ++i)
    if (!find_partner(candidate.specs, i, reference.specs))
      all.push_back({candidate.specs[i].name, "", {.why_not = "only the candidate has it"}});
  return all;
}

Result<std::vector<size_t>> order_of(std::span<const TensorSpec> candidate, std::span<const TensorSpec> reference) {
  if (candidate.size() != reference.size())
    return invalid(
        fmt::format("the reference has {} inputs, the candidate {}: they cannot be given the same", reference.size(), candidate.size()));
  std::vector<size_t> order;
  for (size_t i = 0; i < candidate.size(); ++i) {
    const size_t from = place_of(reference, candidate[i].name).value_or(i);
    if (reference[from].dtype != candidate[i].dtype)
      return invalid(fmt::format("input '{}' is {} in the reference and {} in the candidate", candidate[i].name,
                                 dtype_name(reference[from].dtype), dtype_name(candidate[i].dtype)));
    order.push_back(from);
  }
  return order;
}

}  // namespace serin::cli
