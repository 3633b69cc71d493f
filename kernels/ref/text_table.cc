// text_table.cc: lists the operators of this family that have a reference kernel: strings.

#include "kernels/ref/text_families.h"

namespace serin::kernels::ref {

namespace {

constexpr GenericRow kRows[] = {
    {"ChangeCase", change_case},
    {"HashBucket", hash_bucket},
    {"ParseExample", parse_example},
    {"RegexReplace", regex_replace},
    {"RegexFullMatch", regex_full_match},
    {"SparseCross", sparse_cross},
    {"StringConcat", string_concat},
    {"StringNormalizer", string_normalizer},
    {"StringSplit", string_split},
    {"TfIdfVectorizer", tf_idf_vectorizer},
    {"Tokenizer", tokenizer},
};

}  // namespace

std::span<const GenericRow> text_kernels() { return kRows; }

}  // namespace serin::kernels::ref
