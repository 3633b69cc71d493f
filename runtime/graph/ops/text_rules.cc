// text_rules.cc: shape rules of one family: strings. How many strings come out depends on what is in them, which is looked at once it is
// known.

#include <algorithm>
#include <string_view>

#include "runtime/graph/ops/families.h"

namespace serin::graph {

namespace {

Status require_strings(const Context& c) {
  for (size_t i = 0; i < c.operands(); ++i) {
    if (c.dtype(i) != DType::kString && c.dtype(i) != DType::kUndefined)
      return c.fail("operand {} is {}, it must be strings", i, dtype_name(c.dtype(i)));
  }
  return {};
}

}  // namespace

Status infer_string_concat(Context& c) {
  SERIN_CHECK(require_strings(c));
  return infer_arithmetic(c);
}

/// Another text in place of each.
Status infer_text(Context& c) {
  SERIN_CHECK(require_strings(c));
  return c.set(0, DType::kString, c.type(0).shape);
}

Status infer_regex_full_match(Context& c) {
  SERIN_CHECK(require_strings(c));
  return infer_predicate(c);
}

Status infer_hash_bucket(Context& c) {
  SERIN_CHECK(require_strings(c));
  return c.set(0, DType::kInt64, c.type(0).shape);
}

/// [c] or [1, c]. Stop words leave at least one string, an empty one if need be.
Status infer_string_normalizer(Context& c) {
  SERIN_CHECK(require_strings(c));
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, DType::kString, std::nullopt);
  if (x->size() != 1 && !(x->size() == 2 && unify(x->front(), 1))) return c.fail("needs [c] or [1,c], got {}", print(*x));
  Dims y = *x;
  if (!c.node().texts("stopwords").empty()) y.back() = c.unknown_dim(max(x->back(), 1));
  return c.set(0, DType::kString, std::move(y));
}

namespace {

/// Into how many parts a text is split: at each delimiter, or at runs of white space where there is none.
int64_t parts_of(std::string_view text, std::string_view delimiter) {
  int64_t parts = 0;
  if (delimiter.empty()) {
    bool inside = false;
    for (const char c : text) {
      const bool space = c == ' ' || (c >= '\t' && c <= '\r');
      parts += !space && !inside;
      inside = !space;
    }
    return parts;
  }
  if (text.empty()) return 0;
  for (size_t at = text.find(delimiter); at != std::string_view::npos; at = text.find(delimiter, at + delimiter.size())) ++parts;
  return parts + 1;
}

/// The most parts that any of the strings has, once they are known.
std::optional<Dim> most_parts(const Context& c) {
  const ConstantPtr x = c.constant(0);
  if (!x || x->dtype != DType::kString) return std::nullopt;
  const std::string delimiter = c.node().text("delimiter", "");
  const int64_t limit = c.node().integer("maxsplit", -1);
  int64_t most = 0;
  for (const std::string& text : x->strings) {
    const int64_t parts = parts_of(text, delimiter);
    most = std::max(most, limit >= 0 && parts > limit ? limit + 1 : parts);
  }
  return most;
}

}  // namespace

Status infer_string_split(Context& c) {
  SERIN_CHECK(require_strings(c));
  const Dims* x = c.dims(0);
  if (c.results() > 1) SERIN_CHECK(c.set(1, DType::kInt64, c.type(0).shape));
  if (!x) return c.set(0, DType::kString, std::nullopt);
  Dims parts = *x;
  const int64_t width = c.node().integer("width", -1);
  if (width >= 0) {
    parts.push_back(width);
    return c.set(0, DType::kString, std::move(parts));
  }
  const auto most = most_parts(c);
  parts.push_back(most ? *most : c.unknown_dim());
  return c.set(0, DType::kString, std::move(parts));
}

Status infer_tf_idf_vectorizer(Context& c) {
  const auto columns = c.node().integers("ngram_indexes");
  int64_t width = 0;
  for (const int64_t column : columns) {
    if (column < 0 || column >= kMaxElements) return c.fail("ngram_indexes has {}", column);
    width = std::max(width, column + 1);
  }
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, DType::kFloat32, std::nullopt);
  if (x->empty() || x->size() > 2) return c.fail("needs [c] or [n,c], got {}", print(*x));
  return c.set(0, DType::kFloat32, x->size() == 1 ? Dims{width} : Dims{x->front(), width});
}

/// One more axis, as long as the most tokens that a string has: at most its bytes, and a mark at either end.
Status infer_tokenizer(Context& c) {
  SERIN_CHECK(require_strings(c));
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, DType::kString, std::nullopt);
  if (x->empty() || x->size() > 2) return c.fail("needs [c] or [n,c], got {}", print(*x));
  Dims y = *x;
  if (const ConstantPtr known = c.constant(0); known && known->dtype == DType::kString) {
    size_t longest = 0;
    for (const std::string& text : known->strings) longest = std::max(longest, text.size());
    y.push_back(c.unknown_dim(static_cast<int64_t>(longest) + 2));
  } else {
    y.push_back(c.unknown_dim());
  }
  return c.set(0, DType::kString, std::move(y));
}

}  // namespace serin::graph
