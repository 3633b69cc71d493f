// classifier_operators.cc: lists the operators of ai.onnx.ml that are read. Numbers that are tensors in newer versions (thresholds and
// weights in double, keys of any type) become lists, which hold them exactly. There are no maps: DictVectorizer and CastMap are refused,
// ZipMap gives its tensor of scores.

#include <fmt/format.h>

#include <array>

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {
namespace {

using graph::Op;

/// The elements as a list attribute: strings, integers, or numbers.
std::optional<graph::Attribute> list_from(const graph::Constant& constant) {
  if (constant.dtype == DType::kString) return constant.strings;
  if (auto integers = graph::integers_of(constant)) return *integers;
  std::vector<double> numbers;
  if (constant.dtype == DType::kFloat32) {
    for (const float value : constant.span<float>()) numbers.push_back(static_cast<double>(value));
  } else if (constant.dtype == DType::kFloat64) {
    for (const double value : constant.span<double>()) numbers.push_back(value);
  } else {
    return std::nullopt;
  }
  return numbers;
}

/// The tensor attribute `key` as the list `as`.
void add_list(NodeImport& node, std::string_view key, std::string_view as, graph::Attributes& attributes) {
  const graph::ConstantPtr tensor = node.tensor(key);
  if (!tensor) return;
  auto list = list_from(*tensor);
  if (!list) return node.unsupported(fmt::format("attribute '{}' is {}", key, dtype_name(tensor->dtype)));
  attributes.insert_or_assign(std::string(as), std::move(*list));
}

/// TreeEnsembleClassifier and -Regressor: hit rates say how often a node was passed, and change nothing.
void import_tree_nodes(NodeImport& node, Op op) {
  graph::Attributes attributes = node.copied_attributes();
  for (const std::string_view key : {"nodes_hitrates", "nodes_hitrates_as_tensor"}) node.ignore(key);
  for (const std::string_view key : {"base_values", "nodes_values", "class_weights", "target_weights"}) {
    const std::string tensor = std::string(key) + "_as_tensor";
    if (node.has(tensor)) add_list(node, tensor, key, attributes);
  }
  node.emit(op, {node.input(0)}, std::move(attributes));
}

void import_tree_ensemble(NodeImport& node, Op op) {
  constexpr std::array<std::string_view, 4> kAggregates = {"AVERAGE", "SUM", "MIN", "MAX"};
  constexpr std::array<std::string_view, 5> kTransforms = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  graph::Attributes attributes = node.copied_attributes();
  node.ignore("nodes_hitrates");
  for (const std::string_view key : {"nodes_splits", "nodes_modes", "leaf_weights", "membership_values"})
    add_list(node, key, key, attributes);
  const int64_t aggregate = node.integer("aggregate_function", 1), transform = node.integer("post_transform", 0);
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
    return node.corrupt(fmt::format("aggregate_function is {}, post_transform is {}", aggregate, transform));
  attributes.insert_or_assign("aggregate_function", std::string(kAggregates[static_cast<size_t>(aggregate)]));
  attributes.insert_or_assign("post_transform", std::string(kTransforms[static_cast<size_t>(transform)]));
  node.emit(op, {node.input(0)}, std::move(attributes));
}

/// Strings to their places in a list and back. The default for an unknown place was "_Unused" then, too.
void import_two_way(NodeImport& node, Op op, std::string_view strings, std::vector<int64_t> integers) {
  graph::Attributes attributes = {{"two_way", int64_t{1}}};
  auto keys = node.texts(strings).value_or(std::vector<std::string>());
  if (integers.empty()) {
    for (size_t i = 0; i < keys.size(); ++i) integers.push_back(static_cast<int64_t>(i));
  }
  if (integers.size() != keys.size()) node.corrupt(fmt::format("has {} strings and {} integers", keys.size(), integers.size()));
  attributes.emplace("keys_strings", std::move(keys));
  attributes.emplace("values_int64s", std::move(integers));
  attributes.emplace("default_int64", node.integer("default_int64", -1));
  attributes.emplace("default_string", node.text("default_string", "_Unused"));
  node.emit(op, {node.input(0)}, std::move(attributes));
}

void import_category_mapper(NodeImport& node, Op op) {
  import_two_way(node, op, "cats_strings", node.integers("cats_int64s").value_or(std::vector<int64_t>()));
}

std::string_view list_suffix(DType dtype) {
  if (dtype == DType::kString) return "_strings";
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 ? "_floats" : "_int64s";
}

/// keys_*, values_* and default_* of any type, the last ones of tensors.
void import_label_encoder(NodeImport& node, Op op) {
  if (node.domain_version() < 2) return import_two_way(node, op, "classes_strings", {});
  graph::Attributes attributes = node.copied_attributes();
  DType to = attributes.contains("values_strings")  ? DType::kString
             : attributes.contains("values_floats") ? DType::kFloat32
                                                    : DType::kInt64;
  if (const auto keys = node.tensor("keys_tensor"))
    add_list(node, "keys_tensor", fmt::format("keys{}", list_suffix(keys->dtype)), attributes);
  if (const auto values = node.tensor("values_tensor")) {
    to = values->dtype;
    add_list(node, "values_tensor", fmt::format("values{}", list_suffix(to)), attributes);
  }
  if (const auto fallback = node.tensor("default_tensor")) {
    const auto list = list_from(*fallback);
    if (!list || fallback->elements() != 1 || fallback->dtype != to)
      return node.corrupt("default_tensor is not one element of the values' type");
    if (const auto* strings = std::get_if<std::vector<std::string>>(&*list))
      attributes.insert_or_assign("default_string", strings->front());
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&*list)) attributes.insert_or_assign("default_int64", integers->front());
    if (const auto* numbers = std::get_if<std::vector<double>>(&*list)) attributes.insert_or_assign("default_float", numbers->front());
  }
  attributes.emplace("to", std::string(dtype_name(to)));
  node.emit(op, {node.input(0)}, std::move(attributes));
}

/// A map from class to score for each row is what clients of a server see as a tensor anyway.
void import_zip_map(NodeImport& node, Op op) {
  for (const std::string_view key : {"classlabels_int64s", "classlabels_strings"}) node.ignore(key);
  node.emit(op, {node.input(0)});
}

constexpr std::string_view kTreeClassifier =
    "base_values class_ids class_nodeids class_treeids class_weights classlabels_int64s classlabels_strings nodes_falsenodeids "
    "nodes_featureids "
    "nodes_missing_value_tracks_true nodes_modes nodes_nodeids nodes_treeids nodes_truenodeids nodes_values post_transform";
constexpr std::string_view kTreeRegressor =
    "aggregate_function base_values n_targets nodes_falsenodeids nodes_featureids nodes_missing_value_tracks_true nodes_modes "
    "nodes_nodeids "
    "nodes_treeids nodes_truenodeids nodes_values post_transform target_ids target_nodeids target_treeids target_weights";
constexpr std::string_view kTreeEnsemble =
    "leaf_targetids n_targets nodes_falseleafs nodes_falsenodeids nodes_featureids nodes_missing_value_tracks_true nodes_trueleafs "
    "nodes_truenodeids tree_roots";
constexpr std::string_view kLabelEncoder =
    "default_float default_int64 default_string keys_floats keys_int64s keys_strings values_floats values_int64s values_strings";

void import_linear_classifier(NodeImport& node, Op op) {
  node.ignore("multi_class");  // each class is weighed on its own either way
  node.emit(op, {node.input(0)}, node.copied_attributes());
}

constexpr OperatorRow kClassifierOperators[] = {
    {"ArrayFeatureExtractor", 1, 2, 2, 1, import_plain, Op::kArrayFeatureExtractor},
    {"Binarizer", 1, 1, 1, 1, import_plain, Op::kBinarizer, "threshold"},
    {"CategoryMapper", 1, 1, 1, 1, import_category_mapper, Op::kLabelEncoder},
    {"FeatureVectorizer", 1, 1, -1, 1, import_plain, Op::kFeatureVectorizer, "inputdimensions"},
    {"Imputer", 1, 1, 1, 1, import_plain, Op::kImputer,
     "imputed_value_floats imputed_value_int64s replaced_value_float replaced_value_int64"},
    {"LabelEncoder", 1, 1, 1, 1, import_label_encoder, Op::kLabelEncoder, kLabelEncoder},
    {"LinearClassifier", 1, 1, 1, 2, import_linear_classifier, Op::kLinearClassifier,
     "classlabels_ints classlabels_strings coefficients intercepts post_transform"},
    {"LinearRegressor", 1, 1, 1, 1, import_plain, Op::kLinearRegressor, "coefficients intercepts post_transform targets"},
    {"Normalizer", 1, 1, 1, 1, import_plain, Op::kNormalizer, "norm"},
    {"OneHotEncoder", 1, 1, 1, 1, import_plain, Op::kOneHotEncoder, "cats_int64s cats_strings zeros"},
    {"SVMClassifier", 1, 1, 1, 2, import_plain, Op::kSVMClassifier,
     "classlabels_ints classlabels_strings coefficients kernel_params kernel_type post_transform prob_a prob_b rho support_vectors "
     "vectors_per_class"},
    {"SVMRegressor", 1, 1, 1, 1, import_plain, Op::kSVMRegressor,
     "coefficients kernel_params kernel_type n_supports one_class post_transform rho support_vectors"},
    {"Scaler", 1, 1, 1, 1, import_plain, Op::kScaler, "offset scale"},
    {"TreeEnsemble", 5, 1, 1, 1, import_tree_ensemble, Op::kTreeEnsemble, kTreeEnsemble},
    {"TreeEnsembleClassifier", 1, 1, 1, 2, import_tree_nodes, Op::kTreeEnsembleClassifier, kTreeClassifier},
    {"TreeEnsembleRegressor", 1, 1, 1, 1, import_tree_nodes, Op::kTreeEnsembleRegressor, kTreeRegressor},
    {"ZipMap", 1, 1, 1, 1, import_zip_map, Op::kIdentity},
};

}  // namespace

OperatorFamily classifier_operators() { return {"ai.onnx.ml", kClassifierOperators}; }

}  // namespace serin::formats::onnx
