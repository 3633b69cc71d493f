// prediction_text.cc:   AT_MS n ASKED ID ASSIGNED ROW,ROW    numbers (t: texts), in hexadecimal digits
//                       AT_MS f ASKED ID ASSIGNED            an error
//                       AT_MS u ASKED ID ASSIGNED why        no class
//                       0 a 0 ID                             ambiguous
#include "router/outcomes/prediction_text.h"

#include <fmt/format.h>

#include <bit>
#include <iterator>
#include <utility>

#include "runtime/base/number.h"
#include "runtime/base/stable_hash.h"

namespace serin::router {
namespace {

using Kind = Prediction::Kind;

constexpr std::string_view kLetters = "ntfu";  // in the order of Kind

/// Up to the next space, which goes, too.
std::string_view next_word(std::string_view& line) {
  const size_t space = line.find(' ');
  const std::string_view word = line.substr(0, space);
  line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
  return word;
}

std::optional<std::vector<uint64_t>> parse_rows(std::string_view text) {
  std::vector<uint64_t> rows;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const auto row = parse_hex<uint64_t>(text.substr(0, comma));
    if (!row) return std::nullopt;
    rows.push_back(*row);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return rows;
}

}  // namespace

uint64_t code_of(double number) { return std::bit_cast<uint64_t>(number + 0.0); }  // -0 is 0
uint64_t code_of(std::string_view text) { return hash_text(text); }

void print_line(std::string& text, int64_t at_ms, std::string_view id, const PredictionEntry& entry) {
  const Prediction& prediction = entry.prediction;
  fmt::format_to(std::back_inserter(text), "{} {} {:x} {} {}", at_ms, kLetters[static_cast<size_t>(prediction.kind)], entry.asked, id,
                 entry.assigned);
  char before = ' ';
  for (const uint64_t row : prediction.rows) fmt::format_to(std::back_inserter(text), "{}{:x}", std::exchange(before, ','), row);
  if (prediction.kind == Kind::kUnread) fmt::format_to(std::back_inserter(text), " {}", prediction.why);
}

void print_ambiguous(std::string& text, std::string_view id) { fmt::format_to(std::back_inserter(text), "0 a 0 {}", id); }

std::optional<PredictionLine> parse_line(std::string_view line) {
  const auto at_ms = parse_number<int64_t>(next_word(line));
  const std::string_view letter = next_word(line);
  const auto asked = parse_hex<uint64_t>(next_word(line));
  const std::string_view id = next_word(line);
  if (!at_ms || !asked || id.empty() || letter.size() != 1) return std::nullopt;
  PredictionLine parsed{.at_ms = *at_ms, .id = std::string(id)};
  if (letter == "a") return parsed;
  const size_t kind = kLetters.find(letter.front());
  const std::string_view assigned = next_word(line);
  if (kind == std::string_view::npos || assigned.empty()) return std::nullopt;
  Prediction prediction{.kind = static_cast<Kind>(kind)};
  if (prediction.kind == Kind::kNumbers || prediction.kind == Kind::kTexts) {
    auto rows = parse_rows(line);
    if (!rows) return std::nullopt;
    prediction.rows = *std::move(rows);
  }
  if (prediction.kind == Kind::kUnread) prediction.why = line;
  parsed.entry = PredictionEntry{.assigned = std::string(assigned), .asked = *asked, .prediction = std::move(prediction)};
  return parsed;
}

}  // namespace serin::router
