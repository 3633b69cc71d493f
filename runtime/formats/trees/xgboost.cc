// xgboost.cc: the JSON of Booster.save_model. XGBoost compares floats, with x < threshold; categories that are listed go to the right.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "runtime/base/file.h"
#include "runtime/base/number.h"
#include "runtime/formats/json_document.h"
#include "runtime/formats/trees/ensemble.h"
#include "runtime/formats/trees/trees.h"
#include "runtime/formats/trees/ubjson.h"

namespace serin::formats {
namespace {

using namespace trees;  // NOLINT(google-build-using-namespace): the format's own folder

Error bad_booster(std::string_view problem) { return {Code::kCorrupt, fmt::format("XGBoost model: {}", problem)}; }

/// How a sum is made from base_score, and a prediction from the sum.
struct Objective {
  std::string_view name;  ///< the beginning of it
  Link link;
  double (*margin)(double base);
};

double same(double base) { return base; }
double logit(double base) { return -std::log(1 / base - 1); }
double logarithm(double base) { return std::log(base); }

constexpr Objective kObjectives[] = {
    {"binary:logistic", Link::kBinary, logit},
    {"binary:logitraw", Link::kIdentity, same},
    {"binary:hinge", Link::kPositive, same},
    {"multi:softprob", Link::kSoftmax, same},
    {"multi:softmax", Link::kSoftmax, same},
    {"reg:logistic", Link::kSigmoid, logit},
    {"reg:gamma", Link::kExponential, logarithm},
    {"reg:tweedie", Link::kExponential, logarithm},
    {"count:poisson", Link::kExponential, logarithm},
    {"survival:cox", Link::kExponential, logarithm},
    {"survival:aft", Link::kExponential, logarithm},
    {"reg:squarederror", Link::kIdentity, same},
    {"reg:linear", Link::kIdentity, same},
    {"reg:squaredlogerror", Link::kIdentity, same},
    {"reg:pseudohubererror", Link::kIdentity, same},
    {"reg:absoluteerror", Link::kIdentity, same},
    {"reg:quantileerror", Link::kIdentity, same},
    {"reg:expectileerror", Link::kIdentity, same},
    {"rank:pairwise", Link::kIdentity, same},
    {"rank:ndcg", Link::kIdentity, same},
    {"rank:map", Link::kIdentity, same},
};

/// Numbers that XGBoost writes as texts: "num_class": "3".
Result<int64_t> parameter(const Json& json, std::string_view key, int64_t fallback, int64_t most) {
  if (!json[key]) return fallback;
  const auto text = json[key].text();
  const auto value = text ? parse_number<int64_t>(*text) : json[key].integer();
  if (!value || *value < 0 || *value > most) return bad_booster(fmt::format("'{}' is not between 0 and {}", key, most));
  return *value;
}

/// "5E-1" or "[1E-1,2E-1]"
Result<std::vector<double>> base_scores(const Json& json) {
  std::string text = json.text_or("5E-1");
  std::vector<double> scores;
  std::string_view rest = text;
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  while (true) {
    const size_t end = std::min(rest.find(','), rest.size());
    const auto score = parse_number<double>(rest.substr(0, end));
    if (!score) return bad_booster("'base_score' is no number");
    scores.push_back(*score);
    if (end == rest.size()) return scores;
    rest.remove_prefix(end + 1);
  }
}

Result<std::vector<int64_t>> integers_of(const Json& json, std::string_view key, size_t count) {
  const Json list = json[key];
  if (!list.is_array() || list.size() != count)
    return bad_booster(fmt::format("'{}' has {} elements, {} are needed", key, list.size(), count));
  std::vector<int64_t> numbers;
  numbers.reserve(count);
  for (const Json& each : list.items()) {
    const auto flag = each.boolean();
    const auto number = flag ? std::optional<int64_t>(*flag) : each.integer();
    if (!number) return bad_booster(fmt::format("'{}' has what is no integer", key));
    numbers.push_back(*number);
  }
  return numbers;
}

Result<std::vector<float>> floats_of(const Json& json, std::string_view key, size_t count) {
  const Json list = json[key];
  if (!list.is_array() || list.size() != count)
    return bad_booster(fmt::format("'{}' has {} elements, {} are needed", key, list.size(), count));
  std::vector<float> numbers;
  numbers.reserve(count);
  for (const Json& each : list.items()) {
    const auto number = each.number_f32();
    if (!number) return bad_booster(fmt::format("'{}' has what is no number", key));
    numbers.push_back(*number);
  }
  return numbers;
}

/// {node: its categories}
Result<std::map<int64_t, std::vector<double>>> categories_of(const Json& json) {
  std::map<int64_t, std::vector<double>> found;
  const size_t count = json["categories_nodes"].size();
  if (count == 0) return found;
  SERIN_TRY(const auto nodes, integers_of(json, "categories_nodes", count));
  SERIN_TRY(const auto begins, integers_of(json, "categories_segments", count));
  SERIN_TRY(const auto sizes, integers_of(json, "categories_sizes", count));
  SERIN_TRY(const auto all, integers_of(json, "categories", json["categories"].size()));
  const auto total = static_cast<int64_t>(all.size());
  for (size_t i = 0; i < count; ++i) {
    if (begins[i] < 0 || begins[i] > total || sizes[i] < 0 || sizes[i] > total - begins[i])
      return bad_booster("categories outside of their list");
    std::vector<double> members;
    for (int64_t at = begins[i]; at < begins[i] + sizes[i]; ++at) members.push_back(static_cast<double>(all[static_cast<size_t>(at)]));
    if (!found.emplace(nodes[i], std::move(members)).second)
      return bad_booster(fmt::format("two lists of categories for node {}", nodes[i]));
  }
  return found;
}

Result<Tree> booster_tree(const Json& json, double weight) {
  SERIN_TRY(const int64_t vector, parameter(json["tree_param"], "size_leaf_vector", 1, kMostClasses));
  if (vector > 1)
    return Error{Code::kUnsupported, "XGBoost model: leaves with several outputs (multi_strategy=multi_output_tree) are not supported"};
  const size_t count = json["left_children"].size();
  if (count == 0) return bad_booster("a tree without nodes");
  SERIN_TRY(const auto left, integers_of(json, "left_children", count));
  SERIN_TRY(const auto right, integers_of(json, "right_children", count));
  SERIN_TRY(const auto features, integers_of(json, "split_indices", count));
  SERIN_TRY(const auto conditions, floats_of(json, "split_conditions", count));
  SERIN_TRY(const auto defaults, integers_of(json, "default_left", count));
  std::vector<int64_t> types(count, 0);
  if (json["split_type"]) {
    SERIN_TRY(types, integers_of(json, "split_type", count));
  }
  SERIN_TRY(const auto categories, categories_of(json));
  for (const auto& [node, members] : categories)
    if (node < 0 || node >= static_cast<int64_t>(count) || types[static_cast<size_t>(node)] != 1)
      return bad_booster(fmt::format("categories for node {}, which does not split by them", node));
  Tree tree;
  std::vector<int64_t> place(count);  // among the splits, or ~place among the leaves
  int64_t splits = 0;
  for (size_t i = 0; i < count; ++i) {
    if (left[i] == -1) {
      place[i] = ~static_cast<int64_t>(tree.leaves.size());
      tree.leaves.push_back(static_cast<double>(conditions[i]) * weight);
    } else {
      place[i] = splits++;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (left[i] == -1) continue;
    for (const int64_t child : {left[i], right[i]})
      if (child < 0 || child >= static_cast<int64_t>(count)) return bad_booster(fmt::format("node {} has a child {}", i, child));
    const int64_t yes = place[static_cast<size_t>(left[i])], no = place[static_cast<size_t>(right[i])];
    const bool to_left = defaults[i] != 0;
    Split split{.feature = features[i], .missing_is_yes = to_left, .yes = yes, .no = no};
    if (types[i] == 1) {
      const auto members = categories.find(static_cast<int64_t>(i));
      split.categorical = true;
      if (members == categories.end()) return bad_booster(fmt::format("node {} splits by categories and has none", i));
      split.members = members->second;
      std::swap(split.yes, split.no);
      split.missing_is_yes = !to_left;
    } else if (types[i] == 0) {
      if (!std::isfinite(conditions[i])) return bad_booster(fmt::format("node {} has a threshold that is no finite number", i));
      split.threshold = std::nextafter(conditions[i], -std::numeric_limits<float>::infinity());  // x < t as x <= the float below t
    } else {
      return Error{Code::kUnsupported, fmt::format("XGBoost model: a split of type {}", types[i])};
    }
    tree.splits.push_back(std::move(split));
  }
  return tree;
}

Result<graph::Graph> read_booster(const Json& root) {
  const Json learner = root["learner"];
  if (!learner.is_object()) return bad_booster("has no 'learner'");
  Json booster = learner["gradient_booster"];
  const std::string kind = booster["name"].text_or("");
  std::vector<float> drops;
  if (kind == "dart")
    booster = booster["gbtree"];
  else if (kind != "gbtree")
    return Error{Code::kUnsupported, fmt::format("XGBoost model: booster '{}'; gbtree and dart are supported", kind)};
  const Json model = booster["model"], parameters = learner["learner_model_param"];
  const Json list = model["trees"];
  if (!list.is_array()) return bad_booster("has no trees");
  if (kind == "dart") {
    SERIN_TRY(drops, floats_of(learner["gradient_booster"], "weight_drop", list.size()));
  }
  SERIN_TRY(const auto classes, integers_of(model, "tree_info", list.size()));
  Ensemble ensemble;
  SERIN_TRY(ensemble.features, parameter(parameters, "num_feature", 0, kMostFeatures));
  SERIN_TRY(const int64_t class_count, parameter(parameters, "num_class", 0, kMostClasses));
  SERIN_TRY(const int64_t target_count, parameter(parameters, "num_target", 1, kMostClasses));
  if (ensemble.features < 1) return bad_booster("has no features");
  ensemble.targets = std::max<int64_t>({1, class_count, target_count});
  const std::string objective = learner["objective"]["name"].text_or("");
  const auto found = std::ranges::find(kObjectives, std::string_view(objective), &Objective::name);
  if (found == std::end(kObjectives))
    return Error{Code::kUnsupported, fmt::format("XGBoost model: objective '{}' is not supported", objective)};
  ensemble.link = found->link;
  if (ensemble.link == Link::kSoftmax && class_count < 2)
    return bad_booster(fmt::format("{} classes for objective '{}'", class_count, objective));
  if (ensemble.link == Link::kBinary && ensemble.targets > 1) ensemble.link = Link::kOneVersusAll;
  SERIN_TRY(std::vector<double> base, base_scores(parameters["base_score"]));
  if (base.size() == 1) base.assign(static_cast<size_t>(ensemble.targets), base[0]);
  if (base.size() != static_cast<size_t>(ensemble.targets))
    return bad_booster(fmt::format("{} base scores for {} outputs", base.size(), ensemble.targets));
  for (const double score : base) {
    ensemble.base.push_back(found->margin(score));
    if (!std::isfinite(ensemble.base.back())) return bad_booster(fmt::format("base score {} has no margin", score));
  }
  size_t at = 0;
  for (const Json& each : list.items()) {
    auto tree = booster_tree(each, drops.empty() ? 1 : static_cast<double>(drops[at]));
    if (!tree) return tree.error().in(fmt::format("tree {}", at));
    tree->target = classes[at++];
    ensemble.trees.push_back(std::move(*tree));
  }
  return build_graph(ensemble);
}

}  // namespace

Result<graph::Graph> read_xgboost_bytes(std::string bytes) {
  const size_t begin = bytes.find_first_not_of(" \t\r\n");
  const bool binary =
      bytes.size() > 1 && bytes[0] == '{' && bytes[1] != '"' && begin == 0 && bytes.find_first_not_of(" \t\r\n", 1) == 1 && bytes[1] != '}';
  if (binary) {
    SERIN_TRY(bytes, trees::json_from_ubjson(bytes));
  }
  SERIN_TRY(const JsonDocument document, JsonDocument::parse(std::move(bytes)));
  return read_booster(document.root());
}

Result<graph::Graph> read_xgboost(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  auto bytes = read_file(path, kTreeFileBytes);
  if (!bytes) return bytes.error();
  auto graph = read_xgboost_bytes(std::move(*bytes));
  return graph ? std::move(graph) : graph.error().in(name);
}

}  // namespace serin::formats
