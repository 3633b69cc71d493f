// charsmap.h: SentencePiece's table of replacements: a double array of units of 32 bits (darts-clone's format), then the texts that they become.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::steps::text {

class Charsmap {
 public:
  struct Match {
    size_t bytes = 0;  ///< of the text; 0: nothing in the table begins it
    std::string_view replacement;
  };

  /// An empty table replaces nothing. kCorrupt: its sizes contradict each other, or a replacement lies outside.
  static Result<Charsmap> read(std::string_view table);

  Match shortest(std::string_view text) const { return search(text, true); }
  Match longest(std::string_view text) const { return search(text, false); }

 private:
  Match search(std::string_view text, bool first) const;

  std::vector<uint32_t> units_;
  std::string texts_;  // each ends with a zero byte
};

}  // namespace serin::steps::text
