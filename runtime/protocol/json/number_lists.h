// number_lists.h: reads long lists of floats from a JSON text and removes them from it. Internal to runtime/protocol.
//
// A parser that does not know the type in advance takes three times as long.
//
//   if (const auto cut = cut_number_lists(text, "data")) ... parse cut->text; where it says "data": i, the list was cut->lists[i] ...
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
  std::vector<std::span<const double>> lists;  ///< valid until this thread's next call, and as long as the CutText lives
  std::unique_ptr<double[]> large;             ///< memory of lists that are too large for the thread's own memory
};

/// Cuts the flat list of numbers out of each member `key`; i, its index, replaces it. The result is valid JSON; the rest is not checked.
///
/// Returns nothing in three cases, and the caller then parses the text unchanged. One member is not a flat list of numbers, an escape might
/// spell the key in another way, or the text is too short to gain time.
std::optional<CutText> cut_number_lists(std::string_view json, std::string_view key);

/// The same for every innermost list of numbers, for protocols whose tensors are nested lists. A string that cut_list() recognises replaces
/// the list; no other string of the text has that form.
std::optional<CutText> cut_inner_lists(std::string_view json);
/// Returns the index of the list for such a string.
std::optional<size_t> cut_list(std::string_view mark);

}  // namespace serin::protocol
