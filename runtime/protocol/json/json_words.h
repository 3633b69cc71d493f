// json_words.h: NaN, Infinity and -Infinity in a text that is JSON otherwise. Python and TensorFlow Serving's clients write them; simdjson takes none of it.
//
// Only once a text was refused is it looked through for them: in place each becomes a string that holds a control character and nothing that anybody
// would send, as long as the word was, so that offsets stay what they are. Internal to runtime/protocol.
#pragma once

#include <simdjson.h>

#include <optional>
#include <span>
#include <string_view>

namespace serin::protocol {

/// Behind the string whose first quote is there.
size_t skip_string(std::string_view text, size_t at);
/// Whether there were any outside strings; `in_lists`: that are elements of a list. None is marked in a text that has the control character itself, however it is
/// written.
bool mark_number_words(std::span<char> text, bool in_lists = false);
/// The number that a marked word stands for.
std::optional<double> number_word(const simdjson::dom::element& element);

}  // namespace serin::protocol
