#include "runtime/evaluation/text_errors.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>

namespace serin::evaluation {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    words.push_back(text.substr(0, text.find_first_of(" \t\r\n")));
    text.remove_prefix(words.back().size());
  }
  return words;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  for (text = trimmed(text); !text.empty(); text.remove_prefix(characters.back().size())) {
    size_t bytes = 1;
    while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) ++bytes;
    characters.push_back(text.substr(0, bytes));
  }
  return characters;
}

size_t distance(const std::vector<std::string_view>& from, const std::vector<std::string_view>& to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t change = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

struct Edits {
  std::vector<double> edits, length;
};

template <class Cut>
Metric rate(const char* name, const TextSamples& samples, Cut cut) {
  auto counts = std::make_shared<Edits>();
  for (size_t row = 0; row < samples.truth.size(); ++row) {
    const auto truth = cut(samples.truth[row]);
    counts->edits.push_back(static_cast<double>(distance(truth, cut(samples.predicted[row]))));
    counts->length.push_back(static_cast<double>(truth.size()));
  }
  return {name, false, [counts](RowList rows) {
            double edits = 0, length = 0;
            for (const uint32_t row : rows) {
              edits += counts->edits[row];
              length += counts->length[row];
            }
            return length > 0 ? edits / length : std::numeric_limits<double>::quiet_NaN();
          }};
}

}  // namespace

std::vector<Metric> text_metrics(const TextSamples& samples) {
  return {rate("wer", samples, words_of), rate("cer", samples, characters_of),
          share_metric("exact", [&samples](uint32_t row) { return samples.truth[row] == samples.predicted[row]; })};
}

}  // namespace serin::evaluation
