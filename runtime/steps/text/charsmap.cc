// charsmap.cc: walks the double array. Each index is checked, because the table comes from a file.

#include "runtime/steps/text/charsmap.h"

#include <cstring>

#include "runtime/base/utf8.h"
#include "runtime/steps/text/normalizer.h"

namespace serin::steps::text {
namespace {

/// Darts-clone's unit: bit 8: a value hangs there; bit 31 and bits 0-7: the label; the other bits: where children are, relative to it.
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t label(uint32_t unit) { return unit & (0x80000000U | 0xFF); }
uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }
uint32_t value(uint32_t unit) { return unit & 0x7FFFFFFF; }

/// The peer looks whole clusters up only where they are shorter than this, and characters otherwise.
constexpr size_t kShortCluster = 6;

class CharsmapNormalizer final : public Normalizer {
 public:
  explicit CharsmapNormalizer(Charsmap map) : map_(std::move(map)) {}

  Status apply(std::string& text) const override {
    std::string out;
    out.reserve(text.size());
    each_grapheme(text, [&](const char* begin, const char* end) {
      if (out.size() > kMostNormalized) return;
      const std::string_view cluster(begin, static_cast<size_t>(end - begin));
      if (cluster.size() < kShortCluster) {
        if (const auto match = map_.shortest(cluster); match.bytes > 0) {
          out += match.replacement;
          return;
        }
      }
      for (size_t at = 0; at < cluster.size();) {
        const std::string_view one = cluster.substr(at, char_bytes(cluster[at]));
        const auto match = map_.shortest(one);
        out += match.bytes > 0 ? match.replacement : one;
        at += one.size();
      }
    });
    if (out.size() > kMostNormalized) return Error{Code::kTooLarge, "the normalized text is too long"};
    text = std::move(out);
    return {};
  }

 private:
  Charsmap map_;
};

}  // namespace

Result<Charsmap> Charsmap::read(std::string_view table) {
  Charsmap map;
  if (table.empty()) return map;
  Error damaged{Code::kCorrupt, "the table of replacements (precompiled_charsmap) is damaged"};
  uint32_t bytes = 0;
  if (table.size() < sizeof(bytes)) return damaged;
  std::memcpy(&bytes, table.data(), sizeof(bytes));  // little-endian, like every supported machine
  table.remove_prefix(sizeof(bytes));
  if (bytes > table.size() || bytes % 4 != 0 || bytes == 0) return damaged;
  map.units_.resize(bytes / 4);
  std::memcpy(map.units_.data(), table.data(), bytes);
  map.texts_ = table.substr(bytes);
  if (map.texts_.empty() || map.texts_.back() != '\0' || !is_utf8(map.texts_)) return damaged;
  return map;
}

Charsmap::Match Charsmap::search(std::string_view text, bool first) const {
  Match found;
  if (units_.empty()) return found;
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) break;
    node ^= byte;
    if (node >= units_.size()) break;
    const uint32_t unit = units_[node];
    if (label(unit) != byte) break;
    node ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) break;
    const size_t begin = value(units_[node]);
    if (begin >= texts_.size()) break;
    if ((static_cast<unsigned char>(texts_[begin]) & 0xC0) == 0x80) break;  // inside a character
    found = {i + 1, std::string_view(texts_).substr(begin, texts_.find('\0', begin) - begin)};
    if (first) break;
  }
  return found;
}

Result<std::unique_ptr<Normalizer>> make_charsmap(std::string_view table) {
  SERIN_TRY(Charsmap map, Charsmap::read(table));
  return std::unique_ptr<Normalizer>(std::make_unique<CharsmapNormalizer>(std::move(map)));
}

}  // namespace serin::steps::text
