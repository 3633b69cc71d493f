// text_operators.cc: lists the operators of this family that are read: strings.

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {
namespace {

using graph::Op;

/// Cases change by Unicode's own rules, whatever the locale.
void import_string_normalizer(NodeImport& node, Op op) {
  node.ignore("locale");
  node.emit(op, node.inputs(), node.copied_attributes());
}

constexpr OperatorRow kTextOperators[] = {
    {"RegexFullMatch", 20, 1, 1, 1, import_plain, Op::kRegexFullMatch, "pattern"},
    {"StringConcat", 20, 2, 2, 1, import_plain, Op::kStringConcat},
    {"StringNormalizer", 10, 1, 1, 1, import_string_normalizer, Op::kStringNormalizer, "case_change_action is_case_sensitive stopwords"},
    {"StringSplit", 20, 1, 1, 2, import_plain, Op::kStringSplit, "delimiter maxsplit"},
    {"TfIdfVectorizer", 9, 1, 1, 1, import_plain, Op::kTfIdfVectorizer,
     "max_gram_length max_skip_count min_gram_length mode ngram_counts ngram_indexes pool_int64s pool_strings weights"},
};

}  // namespace

OperatorFamily text_operators() { return {"", kTextOperators}; }

}  // namespace serin::formats::onnx
