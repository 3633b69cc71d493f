// char_class.h: the classes of characters that tokenisers ask for.
#pragma once

#include <cstdint>

namespace serin::steps::text {

enum CharClass : uint16_t {
  kSpace = 1 << 0,        ///< White_Space of Unicode
  kControl = 1 << 1,      ///< Cc, Cf, Co but for tab and line ends; a code point that Unicode has not assigned is none
  kNonspacing = 1 << 2,   ///< Mn
  kMark = 1 << 3,         ///< Mn, Mc, Me
  kLetter = 1 << 4,       ///< L
  kNumber = 1 << 5,       ///< N
  kPunctuation = 1 << 6,  ///< P, and the symbols of ASCII
  kWord = 1 << 7,         ///< \w of regular expressions
  kIdeograph = 1 << 8,    ///< the blocks that BERT splits into single characters
  kDecomposes = 1 << 9,   ///< NFD or NFKD changes it
  kLowers = 1 << 10,      ///< it has a lower case
  kReorders = 1 << 11,    ///< its combining class is not 0
};

}  // namespace serin::steps::text
