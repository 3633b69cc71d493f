// template_layers_test.cc: what becomes of a value that several layers have.

#include "runtime/planner/template_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace serin::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LayeredValue layered(std::initializer_list<const char*> texts) {
  LayeredValue all;
  int number = 0;
  for (const char* const text : texts) {
    const Status laid = lay_over(all, config::Node::parse(text, std::to_string(++number)).value());
    EXPECT_TRUE(laid) << laid.error().message;
  }
  return all;
}

Status set(Layers& layers, const std::string& text) {
  SERIN_TRY(const Layers::Setting setting, Layers::parse_setting(text));
  return layers.set(setting);
}

TEST(TemplateLayers, MapsAreMergedAndTheRestIsReplaced) {
  const LayeredValue all = layered({"a: {x: 1, y: [1, 2]}\nb: 1", "a: {y: [3], z: word}", "b: {c: 4}"});
  const LayeredText text = block_text(all);
  EXPECT_EQ(text.text, "a:\n  x: 1\n  y: [3]\n  z: \"word\"\nb:\n  c: 4\n");
  EXPECT_THAT(text.origins, ElementsAre("2:1:4", "1:1:8", "2:1:8", "2:1:16", "3:1:4", "3:1:8"));
}

TEST(TemplateLayers, NullRemovesAndAWordReplacesAMap) {
  EXPECT_EQ(block_text(layered({"a: {x: 1, y: 2}\nb: 1", "a: {x: null}\nb: ~"})).text, "a:\n  y: 2\n");
  EXPECT_EQ(block_text(layered({"a: {x: 1}", "a: none"})).text, "a: \"none\"\n");
  EXPECT_EQ(block_text(layered({"a: {x: 1}", "a: {}"})).text, "a:\n  x: 1\n");  // a map without keys removes none
}

TEST(TemplateLayers, TextsSurviveAsTheyAre) {
  const std::string text = block_text(layered({"a: \"x: {y}\\n# z\"\n\"b: c\": ['null', \"true\", 'it''s', 007]"})).text;
  const LayeredValue again = layered({text.c_str()});
  EXPECT_EQ(again.find("a")->node->text().value(), "x: {y}\n# z");
  const auto items = again.find("b: c")->node->items();
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[0].text().value(), "null");
  EXPECT_EQ(items[2].text().value(), "it's");
  EXPECT_EQ(items[3].text().value(), "007");
}

TEST(TemplateLayers, SettingsHaveTheLastWord) {
  Layers layers;
  layers.all = layered({"a: {x: 1}\nb: 2"});
  EXPECT_TRUE(set(layers, "a.y=[1, {z: 2}]"));
  EXPECT_TRUE(set(layers, R"(labels.example\.com/team=vision)"));
  EXPECT_TRUE(set(layers, "b=null"));
  EXPECT_EQ(block_text(layers.all).text, "a:\n  x: 1\n  y: [1, {\"z\": 2}]\nlabels:\n  \"example.com/team\": \"vision\"\n");
  EXPECT_EQ(layers.all.find("a")->find("y")->where, "--set a.y");
  EXPECT_EQ(layers.all.find("a")->find("y")->error("is odd").message, "--set a.y: is odd");
  EXPECT_THAT(set(layers, "a.x.deep=1").error().message, HasSubstr("a.x of 1:1:8 is no map"));
  for (const char* const wrong : {"", "a", "=1", "a..b=1", ".a=1", "a.=1"}) EXPECT_FALSE(set(layers, wrong)) << wrong;
}

TEST(TemplateLayers, AliasesCannotMakeADocumentGrow) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below + ", " + below + ", " + below + ", " + below + "]\n";
  }
  LayeredValue all;
  EXPECT_THAT(lay_over(all, config::Node::parse(text, "bomb").value()).error().message, HasSubstr("aliases may repeat"));
  EXPECT_THAT(lay_over(all, config::Node::parse("a: &a {b: *a}", "ring").value()).error().message, HasSubstr("in each other"));
}

}  // namespace
}  // namespace serin::planner
