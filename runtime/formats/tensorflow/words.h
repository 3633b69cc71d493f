// words.h: texts that were cut into words. TensorFlow lists the words of all texts one after the other, and says with row numbers or with the places where rows
// begin which of them belong together. Rows of one length that are made from such a list need no list: then each row is computed from its own text.
#pragma once

#include "runtime/formats/tensorflow/node_import.h"

namespace serin::formats::tf {

/// The texts whose words the row numbers count; null: they count something else. `rows`: as many rows as there are texts.
const CutTexts* cut_texts_of_row_numbers(NodeImport& n, ValueId numbers, ValueId rows);
/// The texts whose words lie between the splits; null: something else does.
const CutTexts* cut_texts_of_splits(NodeImport& n, ValueId splits);

/// A list that was computed from the list of words, one by one, as rows [texts, width]: shorter ones are filled up, longer ones cut. kNone: it was computed in
/// another way.
ValueId rows_of_words(NodeImport& n, const CutTexts& cut, ValueId list, ValueId standard, int64_t width);

}  // namespace serin::formats::tf
