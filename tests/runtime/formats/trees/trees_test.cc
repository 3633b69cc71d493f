// Files of LightGBM and XGBoost with a flaw (M1 to M9), and thresholds.

#include "runtime/formats/trees/trees.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "runtime/formats/model_file.h"
#include "runtime/formats/trees/ensemble.h"
#include "runtime/formats/trees/ubjson.h"

namespace serin::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

const std::string kLightGbm =
    "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=1\nobjective=binary sigmoid:1\n"
    "feature_names=a b\ntree_sizes=100\n\n"
    "Tree=0\nnum_leaves=3\nnum_cat=1\nsplit_feature=0 1\nsplit_gain=1 1\nthreshold=0.5 0\ndecision_type=2 1\nleft_child=1 "
    "-1\nright_child=-2 -3\n"
    "leaf_value=0.1 -0.2 0.3\ncat_boundaries=0 1\ncat_threshold=6\nis_linear=0\nshrinkage=1\n\n\nend of trees\n\nparameters:\nend of "
    "parameters\n";

const std::string kXgboost =
    R"({"learner": {"gradient_booster": {"name": "gbtree", "model": {"tree_info": [0], "trees": [{"left_children": [1, -1, -1],
        "right_children": [2, -1, -1], "split_indices": [1, 0, 0], "split_conditions": [0.5, -1.0, 2.0], "default_left": [1, 0, 0],
        "tree_param": {"size_leaf_vector": "1"}}]}}, "learner_model_param": {"base_score": "[5E-1]", "num_class": "0", "num_feature": "2",
        "num_target": "1"}, "objective": {"name": "binary:logistic"}}, "version": [3, 2, 0]})";

std::string error_of(const Result<graph::Graph>& graph) { return graph ? "it was read" : graph.error().message; }
std::string lightgbm_error(const std::string& from, const std::string& to) {
  return error_of(read_lightgbm_text(replaced(kLightGbm, from, to)));
}
std::string xgboost_error(const std::string& from, const std::string& to) {
  return error_of(read_xgboost_bytes(replaced(kXgboost, from, to)));
}

TEST(LightGbm, IsRead) {
  const auto graph = read_lightgbm_text(kLightGbm);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(print(*graph),
              AllOf(HasSubstr("input: f32[batch,2]"), HasSubstr("TreeEnsemble("), HasSubstr("membership_values=[1.0,2.0,nan]")));
  EXPECT_EQ(graph->output_names()[0], "probabilities");
  EXPECT_TRUE(prove_batchable(*graph).yes);
}

TEST(LightGbm, M2_RefusesEveryTruncation) {
  const size_t end = kLightGbm.find("end of trees") + 12;
  for (size_t size = 0; size < end; ++size) EXPECT_FALSE(read_lightgbm_text(kLightGbm.substr(0, size))) << size;
}

TEST(LightGbm, M2_SurvivesEveryFlippedByte) {
  for (size_t at = 0; at < kLightGbm.size(); ++at) {
    for (int bit = 0; bit < 7; ++bit) {
      std::string text = kLightGbm;
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
      const auto graph = read_lightgbm_text(text);
      if (!graph) {
        EXPECT_NE(graph.error().code, Code::kInternal) << graph.error().message;
      }
    }
  }
}

TEST(LightGbm, M5_VersionsObjectivesAndLinearTrees) {
  EXPECT_THAT(lightgbm_error("version=v4", "version=v9"), HasSubstr("version 'v9'"));
  EXPECT_THAT(lightgbm_error("objective=binary", "objective=wild"), HasSubstr("objective 'wild sigmoid:1'"));
  EXPECT_THAT(lightgbm_error("is_linear=0", "is_linear=1"), HasSubstr("linear trees"));
  EXPECT_THAT(lightgbm_error("sigmoid:1", "sigmoid:-1"), HasSubstr("sigmoid"));
}

TEST(LightGbm, M6_BrokenTrees) {
  EXPECT_THAT(lightgbm_error("left_child=1 -1", "left_child=0 -1"), HasSubstr("tree 0 has two ways to child 0"));
  EXPECT_THAT(lightgbm_error("left_child=1 -1", "left_child=7 -1"), HasSubstr("a child 7 that does not exist"));
  EXPECT_THAT(lightgbm_error("left_child=1 -1", "left_child=1 -2"), HasSubstr("two ways to child -2"));
  EXPECT_THAT(lightgbm_error("split_feature=0 1", "split_feature=0 2"), HasSubstr("feature 2 of 2"));
  EXPECT_THAT(lightgbm_error("split_feature=0 1", "split_feature=-1 1"), HasSubstr("feature -1 of 2"));
  EXPECT_THAT(lightgbm_error("Tree=0", "Tree=1"), HasSubstr("tree 0 is missing"));
  EXPECT_THAT(lightgbm_error("end of trees", "end of tree"), HasSubstr("cut off"));
}

TEST(LightGbm, M7_BrokenNumbers) {
  EXPECT_THAT(lightgbm_error("num_leaves=3", "num_leaves=1000000000"), HasSubstr("fewer than 1000000000 leaf values"));
  EXPECT_THAT(lightgbm_error("num_leaves=3", "num_leaves=-3"), HasSubstr("'num_leaves' is '-3'"));
  EXPECT_THAT(lightgbm_error("threshold=0.5 0", "threshold=0.5 x"), HasSubstr("'threshold' has what is no number"));
  EXPECT_THAT(lightgbm_error("threshold=0.5 0", "threshold=nan 0"), HasSubstr("threshold that is no number"));
  EXPECT_THAT(lightgbm_error("threshold=0.5 0", "threshold=0.5 3"), HasSubstr("a split by categories 3"));
  EXPECT_THAT(lightgbm_error("cat_boundaries=0 1", "cat_boundaries=0 90000000"), HasSubstr("contradict"));
  EXPECT_THAT(lightgbm_error("cat_boundaries=0 1", "cat_boundaries=5 1"), HasSubstr("contradict"));
  EXPECT_THAT(lightgbm_error("max_feature_idx=1", "max_feature_idx=99999999999"), HasSubstr("'max_feature_idx'"));
  EXPECT_THAT(lightgbm_error("decision_type=2 1", "decision_type=12 1"), HasSubstr("'decision_type' has 12"));
  EXPECT_THAT(lightgbm_error("num_tree_per_iteration=1", "num_tree_per_iteration=2"), HasSubstr("contradict objective"));
}

TEST(LightGbm, M11_FactorsLeavesAndCategoriesOutOfRange) {
  EXPECT_THAT(lightgbm_error("sigmoid:1", "sigmoid:0"), HasSubstr("a sigmoid whose factor is not a finite number above 0"));
  EXPECT_THAT(lightgbm_error("sigmoid:1", "sigmoid:nan"), HasSubstr("a sigmoid whose factor"));
  EXPECT_THAT(lightgbm_error("sigmoid:1", "sigmoid:inf"), HasSubstr("a sigmoid whose factor"));
  EXPECT_THAT(lightgbm_error("sigmoid:1", "sigmoid:1e39"), HasSubstr("a sigmoid whose factor"));
  for (const char* const leaf : {"nan", "inf", "1e39", "-1e999"})
    EXPECT_THAT(lightgbm_error("-0.2 0.3", std::string(leaf) + " 0.3"), HasSubstr("tree 0 has a leaf")) << leaf;
  EXPECT_EQ(lightgbm_error("-0.2 0.3", "1e-999 0.3"), "it was read") << "which is 0";
  EXPECT_THAT(lightgbm_error("split_feature=0 1", "split_feature=0 99999999999999999999"),
              HasSubstr("'split_feature' has what is no number"));
  EXPECT_THAT(lightgbm_error("cat_threshold=6", "cat_threshold=99999999999"), HasSubstr("'cat_threshold' has what is no number"));
}

TEST(LightGbm, ThresholdsAreTheFloatsBelow) {
  EXPECT_EQ(trees::floor_f32(0.5), 0.5F);
  EXPECT_EQ(trees::floor_f32(0.1), std::nextafter(0.1F, 0.0F));  // 0.1F is above 0.1
  EXPECT_EQ(trees::floor_f32(-0.1), -0.1F);                      // and below -0.1
  EXPECT_EQ(trees::floor_f32(1e300), std::numeric_limits<float>::max());
  EXPECT_EQ(trees::floor_f32(-1e300), -std::numeric_limits<float>::infinity());
}

TEST(Xgboost, IsRead) {
  const auto graph = read_xgboost_bytes(kXgboost);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(print(*graph), AllOf(HasSubstr("input: f32[batch,2]"), HasSubstr("TreeEnsemble(")));
  EXPECT_EQ(graph->output_names()[0], "probabilities");
}

TEST(Xgboost, M2_RefusesEveryTruncation) {
  for (size_t size = 0; size < kXgboost.size(); ++size) EXPECT_FALSE(read_xgboost_bytes(kXgboost.substr(0, size))) << size;
}

TEST(Xgboost, M2_SurvivesEveryFlippedByte) {
  for (size_t at = 0; at < kXgboost.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = kXgboost;
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
      const auto graph = read_xgboost_bytes(text);
      if (!graph) {
        EXPECT_NE(graph.error().code, Code::kInternal) << graph.error().message;
      }
    }
  }
}

TEST(Xgboost, M5_BoostersAndObjectives) {
  EXPECT_THAT(xgboost_error("\"gbtree\"", "\"gblinear\""), HasSubstr("booster 'gblinear'"));
  EXPECT_THAT(xgboost_error("binary:logistic", "my:objective"), HasSubstr("objective 'my:objective'"));
  EXPECT_THAT(xgboost_error("\"size_leaf_vector\": \"1\"", "\"size_leaf_vector\": \"3\""), HasSubstr("multi_output_tree"));
  EXPECT_THAT(xgboost_error("\"learner\"", "\"model\""), HasSubstr("has no 'learner'"));
}

TEST(Xgboost, M6_BrokenTrees) {
  EXPECT_THAT(xgboost_error("[1, -1, -1]", "[0, -1, -1]"), HasSubstr("two ways to child 0"));
  EXPECT_THAT(xgboost_error("[1, -1, -1]", "[2, -1, -1]"), HasSubstr("two ways"));
  EXPECT_THAT(xgboost_error("[1, -1, -1]", "[9, -1, -1]"), HasSubstr("a child 9"));
  EXPECT_THAT(xgboost_error("[1, -1, -1]", "[1, -1]"), HasSubstr("'right_children' has 3 elements, 2 are needed"));
  EXPECT_THAT(xgboost_error("\"split_indices\": [1", "\"split_indices\": [2"), HasSubstr("feature 2 of 2"));
  EXPECT_THAT(xgboost_error("\"tree_info\": [0]", "\"tree_info\": [4]"), HasSubstr("class 4 of 1"));
  EXPECT_THAT(xgboost_error("\"tree_info\": [0]", "\"tree_info\": []"), HasSubstr("'tree_info' has 0"));
}

TEST(Xgboost, M7_BrokenNumbers) {
  EXPECT_THAT(xgboost_error("[0.5, -1.0", "[NaN, -1.0"), HasSubstr("no finite number"));
  EXPECT_THAT(xgboost_error("[0.5, -1.0", "[\"x\", -1.0"), HasSubstr("what is no number"));
  EXPECT_THAT(xgboost_error("[5E-1]", "[]"), HasSubstr("'base_score'"));
  EXPECT_THAT(xgboost_error("[5E-1]", "[2]"), HasSubstr("no margin"));
  EXPECT_THAT(xgboost_error("[5E-1]", "[5E-1,5E-1]"), HasSubstr("2 base scores for 1 outputs"));
  EXPECT_THAT(xgboost_error("\"num_feature\": \"2\"", "\"num_feature\": \"99999999999\""), HasSubstr("'num_feature'"));
}

/// The model with a split by these categories.
std::string by_categories(const std::string& lists) {
  return replaced(kXgboost, R"("tree_param")", R"("split_type": [1, 0, 0], )" + lists + R"(, "tree_param")");
}

TEST(Xgboost, M11_ScoresLeavesAndCategoriesOutOfRange) {
  EXPECT_THAT(xgboost_error("-1.0, 2.0", "NaN, 2.0"), HasSubstr("tree 0 has a leaf nan"));
  EXPECT_THAT(xgboost_error("-1.0, 2.0", "Infinity, 2.0"), HasSubstr("tree 0 has a leaf inf"));
  const std::string raw = replaced(kXgboost, "binary:logistic", "reg:squarederror");
  EXPECT_THAT(error_of(read_xgboost_bytes(replaced(raw, "[5E-1]", "[1E300]"))), HasSubstr("the base score sum to"));
  const auto lists = [](const std::string& nodes, const std::string& members) {
    return fmt::format(R"("categories_nodes": {}, "categories_segments": [0], "categories_sizes": [1], "categories": {})", nodes, members);
  };
  EXPECT_TRUE(read_xgboost_bytes(by_categories(lists("[0]", "[3]"))));
  EXPECT_THAT(error_of(read_xgboost_bytes(by_categories(lists("[0]", "[-3]")))), HasSubstr("tree 0 has a category -3"));
  EXPECT_THAT(error_of(read_xgboost_bytes(by_categories(lists("[0]", "[16777217]")))), HasSubstr("tree 0 has a category 16777217"));
  EXPECT_THAT(error_of(read_xgboost_bytes(by_categories(lists("[1]", "[3]")))),
              HasSubstr("categories for node 1, which does not split by them"));
  EXPECT_THAT(error_of(read_xgboost_bytes(by_categories(lists("[9]", "[3]")))), HasSubstr("categories for node 9"));
  EXPECT_THAT(error_of(read_xgboost_bytes(by_categories(R"("categories_nodes": [])"))),
              HasSubstr("node 0 splits by categories and has none"));
}

std::string ubjson_error(const std::string& bytes) {
  const auto json = trees::json_from_ubjson(bytes);
  return json ? *json : json.error().message;
}

TEST(Ubjson, IsRead) {
  using namespace std::string_literals;
  EXPECT_EQ(ubjson_error("{i\x01"s + "a[$d#i\x02\x3f\x80\0\0\x40\0\0\0i\x01"s + "bSi\x02hii\x01"s + "c[#i\x02i\xffTi\x01"s + "d{}}"s),
            R"({"a":[1,2],"b":"hi","c":[-1,true],"d":{}})");
  EXPECT_EQ(ubjson_error("[I\x01\0l\xff\xff\xff\xfeL\0\0\0\0\0\0\0\x07U\xffZ]"s), "[256,-2,7,255,null]");
}

TEST(Ubjson, M2_BrokenBytes) {
  using namespace std::string_literals;
  const std::string whole = "{i\x01"s + "a[$d#i\x02\x3f\x80\0\0\x40\0\0\0i\x01"s + "bSi\x02hi}"s;
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(trees::json_from_ubjson(whole.substr(0, size))) << size;
  for (size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      (void)trees::json_from_ubjson(bytes);
    }
  EXPECT_THAT(ubjson_error("[$d#L\x10\0\0\0\0\0\0\0"s), HasSubstr("cut off"));
  EXPECT_THAT(ubjson_error("[$Z#L\x10\0\0\0\0\0\0\0"s), HasSubstr("type without a size"));
  EXPECT_THAT(ubjson_error("[#l\xff\xff\xff\xff"s), HasSubstr("negative length"));
  EXPECT_THAT(ubjson_error("SL\x10\0\0\0\0\0\0\0x"s), HasSubstr("cut off"));
  EXPECT_THAT(ubjson_error("Hi\x01"
                           "1"),
              HasSubstr("any precision"));
  EXPECT_THAT(ubjson_error(std::string(100'000, '[')), HasSubstr("nested more than"));
  EXPECT_THAT(ubjson_error("[]x"), HasSubstr("more bytes"));
}

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "serin-trees-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
    return path_ + "/" + name;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(TreeFiles, M1_AreRegularFiles) {
  const Folder folder;
  EXPECT_EQ(read_lightgbm(folder.path() + "/none.txt").error().code, Code::kNotFound);
  EXPECT_FALSE(read_xgboost(folder.path()));
  EXPECT_THAT(error_of(read_lightgbm(folder.write("a.txt", ""))), HasSubstr("a.txt: LightGBM model"));
  EXPECT_FALSE(read_xgboost(folder.write("a.json", "{")));
  const std::string fifo = folder.path() + "/b.txt";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(format_of(fifo));
  EXPECT_FALSE(read_lightgbm(fifo));
}

TEST(TreeFiles, M4_AreKnownByTheirContent) {
  const Folder folder;
  EXPECT_EQ(format_of(folder.write("model.txt", kLightGbm)), Format::kLightGbm);
  EXPECT_EQ(format_of(folder.write("model.json", kXgboost)), Format::kXgboost);
  EXPECT_EQ(format_of(folder.write("model.bst", kLightGbm)), Format::kLightGbm);
  EXPECT_EQ(format_of(folder.write("other.bst", kXgboost)), Format::kXgboost);
  EXPECT_EQ(format_of(folder.write("model.ubj", "{L")), Format::kXgboost);
  EXPECT_FALSE(format_of(folder.write("labels.txt", "cat\ndog\n")));
  EXPECT_FALSE(format_of(folder.write("trees.txt", "tree house\n")));
  EXPECT_FALSE(format_of(folder.write("config.json", R"({"architectures": ["BertModel"]})")));
  EXPECT_FALSE(format_of(folder.write("tokenizer.json", R"({"version": "1.0", "learner": 1)" + std::string(3, ' '))) == Format::kLightGbm);
  EXPECT_FALSE(format_of(folder.write("old.bst", std::string("binf\0\0\0", 7))));
  EXPECT_THAT(*describe_foreign_file("old.bst"), HasSubstr("save_model('model.ubj')"));
  EXPECT_THAT(*describe_foreign_file("model.pkl"), HasSubstr("booster_.save_model('model.txt')"));
}

TEST(TreeFiles, M4_FilesBesideAModelAreNone) {
  const Folder folder;
  folder.write("labels.txt", "cat\ndog\n");
  folder.write("config.json", "{}");
  folder.write("tokenizer.json", "{}");
  const std::string model = folder.write("net.onnx", "x");
  EXPECT_EQ(*find_model_file(folder.path(), "model.onnx"), model);
  std::filesystem::remove(model);
  const std::string trees = folder.write("model.txt", kLightGbm);
  EXPECT_EQ(*find_model_file(folder.path(), "model.onnx"), trees);
}

}  // namespace
}  // namespace serin::formats
