// trie.cc: builds the nodes from sorted keys. A node is a range of keys that begin alike.

#include "runtime/steps/text/trie.h"

namespace serin::steps::text {

Trie::Trie(Keys keys) {
  std::erase_if(keys, [](const auto& key) { return key.first.empty(); });
  std::ranges::stable_sort(keys, {}, &Keys::value_type::first);
  struct Range {
    size_t begin, end;
    size_t depth;
  };
  std::vector<Range> ranges = {{0, keys.size(), 0}};
  for (size_t node = 0; node < ranges.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    for (; begin < end && keys[begin].first.size() == depth; ++begin) value_[node] = keys[begin].second;
    first_.push_back(static_cast<uint32_t>(ranges.size()));
    while (begin < end) {
      const char byte = keys[begin].first[depth];
      size_t behind = begin + 1;
      while (behind < end && keys[behind].first[depth] == byte) ++behind;
      if (node == 0) root_[static_cast<uint8_t>(byte)] = static_cast<uint32_t>(ranges.size());
      ranges.push_back({begin, behind, depth + 1});
      label_.push_back(static_cast<uint8_t>(byte));
      value_.push_back(-1);
      begin = behind;
    }
  }
  first_.push_back(static_cast<uint32_t>(ranges.size()));
}

}  // namespace serin::steps::text
