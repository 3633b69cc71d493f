// number_lists.h: a JSON text without its long lists of floats, which are read on the way. A parser that does not know what comes takes three times as long.
//
//   if (const auto cut = cut_number_lists(text, "data")) ... parse cut->text; where it says "data": i, the list was cut->lists[i] ...
//
// Internal to runtime/protocol.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace serin::protocol {

struct CutText {
  std::string text;
  std::vector<std::span<const double>> lists;  ///< valid until this thread's next call, and as long as the CutText is
  std::unique_ptr<double[]> large;             ///< what holds lists that are too large for the thread's own memory
};

/// Of each member `key` the flat list of numbers, which i stands for, the i-th of them. Nothing where one of them is anything else, where an escape might be another
/// way to write the key, or where the text is too short for it to pay: then the text is to be parsed as it is. What is cut is valid JSON; the rest is not
/// looked at.
std::optional<CutText> cut_number_lists(std::string_view json, std::string_view key);

/// The same of every list of numbers that has no list in it, wherever it stands, for protocols whose tensors are lists within lists. In its place stands a string that
/// cut_list() knows, and no other string of the text.
std::optional<CutText> cut_inner_lists(std::string_view json);
/// Of such a string: which of the lists.
std::optional<size_t> cut_list(std::string_view mark);

}  // namespace serin::protocol
