#include "router/outcomes/assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "router/config/config_outcomes.h"
#include "runtime/base/number.h"
#include "runtime/net/target.h"

namespace serin::router {
namespace {

constexpr size_t kLongest = 8192, kMostVersions = kMostCompared, kIdDigits = 16;
constexpr uint32_t kAll = 1'000'000;

std::string_view take_until(std::string_view& text, char end) {
  const size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      name += text[i];
      continue;
    }
    const auto byte = i + 2 < text.size() ? parse_hex<uint8_t>(text.substr(i + 1, 2)) : std::nullopt;
    if (!byte) return std::nullopt;
    name += static_cast<char>(*byte);
    i += 2;
  }
  return name;
}

Error refused(std::string_view what) {
  return invalid(
      fmt::format("assigned: {}; it must be the header {} of an answer, such as 2;1=950000,2=50000;00000000c0ffee42;1764437000123", what,
                  kAssignedHeader));
}

}  // namespace

uint32_t Assignment::share_of(std::string_view name) const {
  const auto found = std::ranges::find(shares, name, &std::pair<std::string, uint32_t>::first);
  return found == shares.end() ? 0 : found->second;
}

void append_id(std::string& out, uint64_t id) { fmt::format_to(std::back_inserter(out), "{:016x}", id); }

void append_assignment(std::string& out, std::string_view version, std::span<const NamedShare> shares, uint64_t id, uint64_t at_ms) {
  net::append_escaped(version, {}, out);
  char before = ';';
  for (const auto& [name, ppm] : shares) {
    if (ppm == 0) continue;
    out += before;
    net::append_escaped(name, {}, out);
    fmt::format_to(std::back_inserter(out), "={}", ppm);
    before = ',';
  }
  out += ';';
  append_id(out, id);
  fmt::format_to(std::back_inserter(out), ";{}", at_ms);
}

Result<Assignment> parse_assignment(std::string_view text) {
  if (text.size() > kLongest) return refused(fmt::format("it is longer than {} bytes", kLongest));
  const auto parts = 1 + std::ranges::count(text, ';');
  if (parts != 3 && parts != 4) return refused("it has neither three nor four parts");
  Assignment assignment;
  const auto version = unescaped(take_until(text, ';'));
  std::string_view shares = take_until(text, ';');
  uint64_t all = 0;
  while (!shares.empty()) {
    std::string_view entry = take_until(shares, ',');
    const auto name = unescaped(take_until(entry, '='));
    const auto ppm = parse_number<uint32_t>(entry);
    if (assignment.shares.size() == kMostVersions) return refused(fmt::format("it has more than {} shares", kMostVersions));
    if (!name || name->empty() || !ppm || *ppm == 0) return refused("a share is not VERSION=PARTS_PER_MILLION");
    if (assignment.share_of(*name) > 0) return refused("a version has two shares");
    assignment.shares.emplace_back(*name, *ppm);
    all += *ppm;
  }
  if (assignment.shares.size() < 2 || assignment.shares.size() > kMostVersions || all > kAll)
    return refused(fmt::format("it needs 2 to {} shares that are at most {} together", kMostVersions, kAll));
  if (!version || assignment.share_of(*version) == 0) return refused("its version has no share");
  const std::string_view digits = take_until(text, ';');
  const auto id = digits.size() == kIdDigits ? parse_hex<uint64_t>(digits) : std::nullopt;
  if (!id) return refused("its ID is not 16 hexadecimal digits");
  if (parts == 4) assignment.at_ms = parse_number<uint64_t>(text);
  if (parts == 4 && !assignment.at_ms) return refused("its time is not a number of milliseconds");
  assignment.version = *version;
  assignment.id = *id;
  return assignment;
}

}  // namespace serin::router
