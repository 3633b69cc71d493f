// batchable_texts.cc: the rules of operators on texts.
//
// A text that is cut into parts becomes a row, and the rows of a run are filled up to the longest of them. So the row of an item is as long as another item needs.
// Such rows have a state of their own (BatchState::filler), which only operators read that give the same for a row and for the same row filled up.

#include <algorithm>

#include "runtime/graph/proofs/batchable_rule.h"

namespace serin::graph {

namespace {

using Outcome = Result<BatchState>;

}  // namespace

/// Each message is a row of the dense features. Listed ones have as many values as the messages say.
Outcome BatchRule::examples() const {
  SERIN_CHECK(rest_is_same(1));
  if (result_ >= node_.integers("ranks").size()) return refuse("lists the values of a whole batch");
  return state(0);
}

/// StringSplit, Tokenizer: the parts of each text, and how many they are. A `width` is the same for all.
Outcome BatchRule::cut_texts() const {
  if (!state(0).is_rows()) return refuse("computes with the size of the batch");
  BatchState rows = state(0);
  if (result_ == 0 && node_.integer("width", -1) < 0) rows.filler = node_.text("pad_value", "");
  return rows;
}

/// TfIdfVectorizer of x [n, c]: what fills a row up is in none of the n-grams, so no n-gram reaches into it.
Outcome BatchRule::count_grams() const {
  if (dims(0).size() != 2 || !state(0).is_rows() || state(0).axis != 0) return refuse("counts in the whole batch");
  if (state(0).is_filled_up() && std::ranges::count(node_.texts("pool_strings"), *state(0).filler) > 0)
    return refuse("counts what fills rows up to the longest of the batch");
  return BatchState::rows(0, state(0).block);
}

/// StringNormalizer of x [n]: without stop words each text stays at its place.
Outcome BatchRule::normalised_texts() const {
  const bool in_place = dims(0).size() == 1 && state(0).is_rows() && node_.texts("stopwords").empty();
  return in_place ? Outcome(state(0)) : Outcome(refuse("may drop texts, and others move up"));
}

}  // namespace serin::graph
