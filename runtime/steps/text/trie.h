// trie.h: all keys that begin a text, in one walk over it. Vocabularies of WordPiece and Unigram, and added tokens, are searched so.
//
// The nodes are in breadth-first order, so that the children of a node lie side by side and the children of the next node follow.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace serin::steps::text {

class Trie {
 public:
  struct Match {
    size_t bytes = 0;
    int32_t value = -1;  ///< -1: no key begins the text
  };
  using Keys = std::vector<std::pair<std::string_view, int32_t>>;

  Trie() { first_.assign(2, 1); }
  /// Values are at least 0; of equal keys the last one counts. Empty keys are left out.
  explicit Trie(Keys keys);

  /// Calls take(bytes, value) for each key that begins the text, the shortest first.
  template <class F>
  void each_prefix(std::string_view text, F&& take) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<uint8_t>(text[i]));
      if (node == 0) return;
      if (value_[node] >= 0) take(i + 1, value_[node]);
    }
  }

  Match longest(std::string_view text) const {
    Match found;
    each_prefix(text, [&found](size_t bytes, int32_t value) { found = {bytes, value}; });
    return found;
  }

  bool starts_with(char byte) const { return root_[static_cast<uint8_t>(byte)] != 0; }

 private:
  /// 0: there is none.
  uint32_t child(uint32_t node, uint8_t byte) const {
    if (node == 0) return root_[byte];
    const auto begin = label_.begin() + first_[node], end = label_.begin() + first_[node + 1];
    const auto found = end - begin > 8 ? std::lower_bound(begin, end, byte) : std::find(begin, end, byte);
    return found != end && *found == byte ? static_cast<uint32_t>(found - label_.begin()) : 0;
  }

  std::array<uint32_t, 256> root_{};  // the children of node 0
  std::vector<uint8_t> label_{0};     // of a node: its last byte
  std::vector<uint32_t> first_;       // of a node: its first child
  std::vector<int32_t> value_{-1};    // of a node: -1 if no key ends there
};

}  // namespace serin::steps::text
