// sentencepiece_normalizer.h: SentencePiece's own cleaning: replacements, longest first, and what it does about spaces.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/steps/text/charsmap.h"
#include "runtime/steps/text/normalizer.h"

namespace serin::steps::text {

struct SentencePieceCleaning {
  Charsmap replacements;
  std::vector<std::string> kept;  ///< user-defined pieces, which no replacement changes
  bool space_in_front = true;     ///< add_dummy_prefix
  bool remove_extra_spaces = true;
  bool mark_spaces = true;  ///< escape_whitespaces: a space becomes U+2581
};
std::unique_ptr<Normalizer> make_sentencepiece_normalizer(SentencePieceCleaning rules);

}  // namespace serin::steps::text
