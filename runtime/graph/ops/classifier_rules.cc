// classifier_rules.cc: shape rules of one family: ai.onnx.ml. What the attributes must be like beside their sizes is checked where they are
// used, by the kernels.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

namespace {

/// Rows of x [c] or [n, c].
Result<Dim> rows_of(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.unknown_dim();
  if (x->empty() || x->size() > 2) return c.fail("needs [c] or [n,c], got {}", print(*x));
  return x->size() == 2 ? x->front() : Dim(1);
}

size_t strings_in(const Context& c, std::string_view key) {
  const auto found = c.node().attributes.find(key);
  const auto* list = found == c.node().attributes.end() ? nullptr : std::get_if<std::vector<std::string>>(&found->second);
  return list ? list->size() : 0;
}

size_t numbers_in(const Context& c, std::string_view key) {
  const auto found = c.node().attributes.find(key);
  const auto* list = found == c.node().attributes.end() ? nullptr : std::get_if<std::vector<double>>(&found->second);
  return list ? list->size() : 0;
}

/// Label [n] and scores [n, columns].
Status set_classes(Context& c, std::string_view strings, int64_t columns) {
  SERIN_TRY(const Dim n, rows_of(c));
  SERIN_CHECK(c.set(0, strings_in(c, strings) > 0 ? DType::kString : DType::kInt64, Dims{n}));
  return c.results() > 1 ? c.set(1, DType::kFloat32, Dims{n, columns}) : Status{};
}

int64_t labels_in(const Context& c, std::string_view strings, std::string_view ints) {
  const size_t named = strings_in(c, strings);
  return static_cast<int64_t>(named > 0 ? named : c.node().integers(ints).size());
}

}  // namespace

Status infer_array_feature_extractor(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  const Dims *x = c.dims(0), *indices = c.dims(1);
  if (!x || !indices) return c.set(0, c.dtype(0), std::nullopt);
  if (x->empty()) return c.fail("the input has no axis to choose from");
  Dims y = x->size() == 1 ? Dims{1, 1} : *x;
  y.back() = product(*indices);
  return c.set(0, c.dtype(0), std::move(y));
}

Status infer_feature_vectorizer(Context& c) {
  int64_t width = 0;
  for (const int64_t each : c.node().integers("inputdimensions")) {
    if (each < 0 || each > kMaxElements) return c.fail("inputdimensions has {}", each);
    width = std::min(width + each, kMaxElements);
  }
  SERIN_TRY(const Dim n, rows_of(c));
  return c.set(0, DType::kFloat32, Dims{n, width});
}

Status infer_floats(Context& c) { return c.set(0, DType::kFloat32, c.type(0).shape); }

/// "to" is the type of the values; a two-way encoder answers strings to integers and integers to strings.
Status infer_label_encoder(Context& c) {
  SERIN_TRY(DType dtype, c.dtype_attribute("to", DType::kUndefined));
  if (c.node().integer("two_way", 0) != 0) dtype = c.dtype(0) == DType::kString ? DType::kInt64 : DType::kString;
  return c.set(0, dtype, c.type(0).shape);
}

Status infer_one_hot_encoder(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, DType::kFloat32, std::nullopt);
  Dims y = *x;
  y.push_back(labels_in(c, "cats_strings", "cats_int64s"));
  return c.set(0, DType::kFloat32, std::move(y));
}

Status infer_linear_classifier(Context& c) {
  const int64_t labels = labels_in(c, "classlabels_strings", "classlabels_ints");
  const auto targets = static_cast<int64_t>(numbers_in(c, "intercepts"));
  return set_classes(c, "classlabels_strings", targets == 0 || (targets == 1 && labels == 2) ? labels : targets);
}

/// One column for each class, or for each pair of classes where there are support vectors and no probabilities.
Status infer_svm_classifier(Context& c) {
  const int64_t labels = labels_in(c, "classlabels_strings", "classlabels_ints");
  int64_t vectors = 0;
  for (const int64_t each : c.node().integers("vectors_per_class")) vectors = each > 0 ? 1 : vectors;
  const bool pairs = vectors > 0 && numbers_in(c, "prob_a") == 0;
  if (labels > 65535) return c.fail("{} classes, at most 65535 are supported", labels);
  return set_classes(c, "classlabels_strings", pairs && labels > 2 ? labels * (labels - 1) / 2 : labels);
}

Status infer_tree_classifier(Context& c) {
  return set_classes(c, "classlabels_strings", labels_in(c, "classlabels_strings", "classlabels_int64s"));
}

namespace {

Status set_targets(Context& c, DType dtype, int64_t targets) {
  SERIN_TRY(const Dim n, rows_of(c));
  return c.set(0, dtype, Dims{n, targets});
}

}  // namespace

Status infer_linear_regressor(Context& c) { return set_targets(c, DType::kFloat32, c.node().integer("targets", 1)); }

Status infer_svm_regressor(Context& c) { return set_targets(c, DType::kFloat32, 1); }

Status infer_tree_regressor(Context& c) { return set_targets(c, DType::kFloat32, c.node().integer("n_targets", 1)); }

Status infer_tree_ensemble(Context& c) { return set_targets(c, c.dtype(0), c.node().integer("n_targets", 1)); }

}  // namespace serin::graph
