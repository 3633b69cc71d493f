// text_anything.h: what a fuzzer asks of tokenisers.
#pragma once

#include <string_view>

namespace serin::fuzz {

/// The file of a tokeniser; behind a line "===" a text, and behind another one its pair.
void text_anything(std::string_view input);

}  // namespace serin::fuzz
