// lightgbm.cc: the text of Booster.save_model, version 2 to 4: lines key=value, a block for each tree.
//
// LightGBM compares doubles. A threshold becomes the largest float that is not above it, which sends every float the same way.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>

#include "runtime/base/file.h"
#include "runtime/base/number.h"
#include "runtime/formats/trees/ensemble.h"
#include "runtime/formats/trees/trees.h"

namespace serin::formats {
namespace {

using namespace trees;  // NOLINT(google-build-using-namespace): the format's own folder

constexpr uint64_t kMissingNone = 0, kMissingZero = 1, kMissingNan = 2;

using Block = std::map<std::string_view, std::string_view>;

Error bad_model(std::string_view problem) { return {Code::kCorrupt, fmt::format("LightGBM model: {}", problem)}; }

/// Takes lines off `rest` until an empty one. A line without '=' is a flag.
Block take_block(std::string_view& rest) {
  Block block;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) break;
    const size_t equal = line.find('=');
    if (equal == std::string_view::npos)
      block.emplace(line, "");
    else
      block.emplace(line.substr(0, equal), line.substr(equal + 1));
  }
  return block;
}

std::string_view text_of(const Block& block, std::string_view key) {
  const auto found = block.find(key);
  return found == block.end() ? std::string_view() : found->second;
}

/// Calls each(word) for the words between spaces.
template <class F>
void for_words(std::string_view text, F&& each) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) each(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Exactly `count` numbers; kCorrupt otherwise. A number of floating point that is too large is infinite, one that is too small 0.
template <class T>
Result<std::vector<T>> numbers_of(const Block& block, std::string_view key, size_t count) {
  std::vector<T> numbers;
  bool wrong = false;
  for_words(text_of(block, key), [&](std::string_view word) {
    T value{};
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (std::is_floating_point_v<T> && failure == std::errc::result_out_of_range)
      value = static_cast<T>(std::strtod(std::string(word).c_str(), nullptr));
    else
      wrong = wrong || failure != std::errc();
    wrong = wrong || end != word.data() + word.size();
    numbers.push_back(value);
  });
  if (wrong) return bad_model(fmt::format("'{}' has what is no number", key));
  if (numbers.size() != count) return bad_model(fmt::format("'{}' has {} numbers, {} are needed", key, numbers.size(), count));
  return numbers;
}

Result<int64_t> integer_of(const Block& block, std::string_view key, int64_t least, int64_t most) {
  const auto value = parse_number<int64_t>(text_of(block, key));
  if (!value || *value < least || *value > most) return bad_model(fmt::format("'{}' is '{}'", key, text_of(block, key).substr(0, 40)));
  return *value;
}

/// LightGBM takes |x| <= 1e-35 as 0, so that no threshold may lie between such an x and 0.
float threshold_of(double value) {
  constexpr float kZero = 1e-35F;
  const float threshold = floor_f32(value);
  if (threshold >= 0 && threshold < kZero) return kZero;
  if (threshold < 0 && threshold >= -kZero) return std::nextafter(-kZero, -std::numeric_limits<float>::infinity());
  return threshold;
}

/// What the files say of missing values of a feature; a feature is treated in one way in all trees.
class Missing {
 public:
  explicit Missing(int64_t features) : kinds_(static_cast<size_t>(features)) {}

  Status note(int64_t feature, uint64_t kind) {
    if (feature < 0 || feature >= static_cast<int64_t>(kinds_.size()))
      return bad_model(fmt::format("feature {} of {}", feature, kinds_.size()));
    auto& noted = kinds_[static_cast<size_t>(feature)];
    if (noted && (*noted == kMissingZero) != (kind == kMissingZero))
      return Error{Code::kUnsupported, fmt::format("LightGBM model: zeros of feature {} are missing values in some trees only", feature)};
    noted = kind;
    return {};
  }

  std::vector<bool> zeros() const {
    std::vector<bool> zeros;
    zeros.reserve(kinds_.size());
    for (const auto& kind : kinds_) zeros.push_back(kind == kMissingZero);
    return zeros;
  }

 private:
  std::vector<std::optional<uint64_t>> kinds_;
};

/// The categories whose bits are set in words begin .. end.
std::vector<double> categories(const std::vector<uint32_t>& words, int64_t begin, int64_t end) {
  std::vector<double> members;
  for (int64_t word = begin; word < end; ++word)
    for (int bit = 0; bit < 32; ++bit)
      if (words[static_cast<size_t>(word)] >> bit & 1) members.push_back(static_cast<double>((word - begin) * 32 + bit));
  return members;
}

Result<Tree> read_tree(const Block& block, Missing& missing) {
  Tree tree;
  SERIN_TRY(const int64_t leaves, integer_of(block, "num_leaves", 1, int64_t{1} << 31));
  if (block.contains("is_linear") && text_of(block, "is_linear") != "0")
    return Error{Code::kUnsupported, "LightGBM model: has linear trees (linear_tree=true), which are not supported: train without them"};
  if (text_of(block, "leaf_value").size() / 2 + 1 < static_cast<size_t>(leaves))
    return bad_model(fmt::format("fewer than {} leaf values", leaves));
  SERIN_TRY(tree.leaves, numbers_of<double>(block, "leaf_value", static_cast<size_t>(leaves)));
  const auto splits = static_cast<size_t>(leaves) - 1;
  if (splits == 0) return tree;
  SERIN_TRY(const auto features, numbers_of<int64_t>(block, "split_feature", splits));
  SERIN_TRY(const auto thresholds, numbers_of<double>(block, "threshold", splits));
  SERIN_TRY(const auto kinds, numbers_of<int64_t>(block, "decision_type", splits));
  SERIN_TRY(const auto left, numbers_of<int64_t>(block, "left_child", splits));
  SERIN_TRY(const auto right, numbers_of<int64_t>(block, "right_child", splits));
  int64_t lists = 0;
  if (block.contains("num_cat")) {
    SERIN_TRY(lists, integer_of(block, "num_cat", 0, static_cast<int64_t>(splits)));
  }
  std::vector<int64_t> boundaries;
  std::vector<uint32_t> words;
  if (lists > 0) {
    SERIN_TRY(boundaries, numbers_of<int64_t>(block, "cat_boundaries", static_cast<size_t>(lists) + 1));
    const int64_t count = boundaries.back();
    if (boundaries.front() != 0 || !std::ranges::is_sorted(boundaries) ||
        count > static_cast<int64_t>(text_of(block, "cat_threshold").size()))
      return bad_model("'cat_boundaries' contradict 'cat_threshold'");
    SERIN_TRY(words, numbers_of<uint32_t>(block, "cat_threshold", static_cast<size_t>(count)));
  }
  for (size_t i = 0; i < splits; ++i) {
    const auto bits = static_cast<uint64_t>(kinds[i]);
    const uint64_t kind = bits >> 2 & 3;
    const bool left_is_default = (bits & 2) != 0;
    if (kind > kMissingNan) return bad_model(fmt::format("'decision_type' has {}", kinds[i]));
    Split split{.feature = features[i], .yes = left[i], .no = right[i]};
    if (bits & 1) {
      const double list = thresholds[i];
      if (!(list >= 0 && list < static_cast<double>(lists))) return bad_model(fmt::format("a split by categories {}", list));
      const auto at = static_cast<size_t>(list);
      split.categorical = true;
      split.members = categories(words, boundaries[at], boundaries[at + 1]);
    } else {
      SERIN_CHECK(missing.note(features[i], kind));
      split.threshold = threshold_of(thresholds[i]);
      // Without a rule for missing values NaN counts as 0.
      split.missing_is_yes = kind == kMissingNone ? thresholds[i] >= 0 : left_is_default;
    }
    tree.splits.push_back(std::move(split));
  }
  return tree;
}

/// "binary sigmoid:1": the link, and the number behind `parameter`.
Status set_link(std::string_view objective, Ensemble& ensemble) {
  struct Row {
    std::string_view name;
    Link link;
  };
  constexpr Row kRows[] = {
      {"binary", Link::kBinary},
      {"multiclass", Link::kSoftmax},
      {"multiclassova", Link::kOneVersusAll},
      {"cross_entropy", Link::kSigmoid},
      {"cross_entropy_lambda", Link::kLogExponential},
      {"poisson", Link::kExponential},
      {"gamma", Link::kExponential},
      {"tweedie", Link::kExponential},
      {"regression", Link::kIdentity},
      {"regression_l1", Link::kIdentity},
      {"huber", Link::kIdentity},
      {"fair", Link::kIdentity},
      {"quantile", Link::kIdentity},
      {"mape", Link::kIdentity},
      {"lambdarank", Link::kIdentity},
      {"rank_xendcg", Link::kIdentity},
      {"custom", Link::kIdentity},
      {"none", Link::kIdentity},
      {"", Link::kIdentity},
  };
  std::string_view name;
  bool first = true, square = false;
  double scale = 1;
  for_words(objective, [&](std::string_view word) {
    if (std::exchange(first, false)) {
      name = word;
    } else if (word.starts_with("sigmoid:")) {
      scale = parse_number<double>(word.substr(8)).value_or(0);
    } else {
      square = square || word == "sqrt";
    }
  });
  const auto found = std::ranges::find(kRows, name, &Row::name);
  if (found == std::end(kRows))
    return Error{Code::kUnsupported, fmt::format("LightGBM model: objective '{}' is not supported", objective.substr(0, 80))};
  ensemble.link = square ? Link::kSignedSquare : found->link;
  if (ensemble.link == Link::kBinary || ensemble.link == Link::kOneVersusAll) ensemble.scale = scale;
  if (!(ensemble.scale > 0) || !std::isfinite(static_cast<float>(ensemble.scale)))
    return bad_model("a sigmoid whose factor is not a finite number above 0");
  return {};
}

}  // namespace

Result<graph::Graph> read_lightgbm_text(std::string_view text) {
  std::string_view rest = text;
  const Block header = take_block(rest);
  if (!header.contains("tree")) return bad_model("does not begin with 'tree'");
  const std::string_view version = text_of(header, "version");
  if (version != "v2" && version != "v3" && version != "v4")
    return Error{Code::kUnsupported, fmt::format("LightGBM model: version '{}'; v2, v3 and v4 are read", version.substr(0, 40))};
  Ensemble ensemble;
  SERIN_TRY(const int64_t last, integer_of(header, "max_feature_idx", 0, kMostFeatures - 1));
  SERIN_TRY(ensemble.targets, integer_of(header, "num_tree_per_iteration", 1, kMostClasses));
  ensemble.features = last + 1;
  SERIN_CHECK(set_link(text_of(header, "objective"), ensemble));
  const bool several = ensemble.link == Link::kSoftmax || ensemble.link == Link::kOneVersusAll;
  if (several ? ensemble.targets < 2 : ensemble.link == Link::kBinary && ensemble.targets != 1)
    return bad_model(fmt::format("{} trees in each iteration contradict objective '{}'", ensemble.targets, text_of(header, "objective")));
  Missing missing(ensemble.features);
  bool ended = false;
  while (!rest.empty() && !ended) {
    const Block block = take_block(rest);
    ended = block.contains("end of trees");
    if (ended || !block.contains("Tree")) continue;
    const auto number = static_cast<int64_t>(ensemble.trees.size());
    if (text_of(block, "Tree") != std::to_string(number)) return bad_model(fmt::format("tree {} is missing", number));
    auto tree = read_tree(block, missing);
    if (!tree) return tree.error().in(fmt::format("tree {}", number));
    tree->target = number % ensemble.targets;
    ensemble.trees.push_back(std::move(*tree));
  }
  if (!ended) return bad_model("has no 'end of trees'; the file is cut off");
  if (ensemble.trees.empty() || static_cast<int64_t>(ensemble.trees.size()) % ensemble.targets != 0)
    return bad_model(fmt::format("{} trees for {} in each iteration", ensemble.trees.size(), ensemble.targets));
  if (header.contains("average_output"))
    ensemble.divisor = static_cast<double>(ensemble.trees.size()) / static_cast<double>(ensemble.targets);
  ensemble.zero_is_missing = missing.zeros();
  return build_graph(ensemble);
}

Result<graph::Graph> read_lightgbm(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  auto text = read_file(path, kTreeFileBytes);
  if (!text) return text.error();
  auto graph = read_lightgbm_text(*text);
  return graph ? std::move(graph) : graph.error().in(name);
}

}  // namespace serin::formats
