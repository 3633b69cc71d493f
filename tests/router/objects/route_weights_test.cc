// route_weights_test.cc: the patches that give the backends of an HTTPRoute their weights.

#include "router/objects/route_weights.h"

#include <gtest/gtest.h>

namespace serin::router {
namespace {

namespace json = boost::json;

json::object route(std::string_view rules) {
  return json::parse(R"({"metadata":{"name":"digits","resourceVersion":"7"},"spec":{"rules":)" + std::string(rules) + "}}").as_object();
}

std::string patch(std::string_view rules, const std::vector<BackendShare>& shares) {
  const auto made = weight_patch(route(rules), shares);
  return made ? json::serialize(*made) : "refused: " + made.error().message;
}

std::string version_and(const std::string& changes) {
  return R"([{"op":"replace","path":"/metadata/resourceVersion","value":"7"},)" + changes + "]";
}

TEST(RouteWeights, ChangesOnlyWhatDiffers) {
  constexpr std::string_view rules = R"([{"backendRefs":[{"name":"other","weight":3},{"name":"b","weight":5},{"name":"a","weight":95}]}])";
  EXPECT_EQ(patch(rules, {{"a", 950'000}, {"b", 50'000}}), "[]");
  EXPECT_EQ(patch(rules, {{"a", 1'000'000}, {"b", 0}}),
            version_and(R"({"op":"add","path":"/spec/rules/0/backendRefs/2/weight","value":100},)"
                        R"({"op":"add","path":"/spec/rules/0/backendRefs/1/weight","value":0})"));
}

TEST(RouteWeights, AnAbsentWeightIsWrittenDown) {
  EXPECT_EQ(patch(R"([{"backendRefs":[{"name":"a"},{"name":"b","weight":99}]}])", {{"a", 10'000}, {"b", 990'000}}),
            version_and(R"({"op":"add","path":"/spec/rules/0/backendRefs/0/weight","value":1})"));
}

TEST(RouteWeights, CountInPercentThousandthsOrMillionths) {
  constexpr std::string_view rules = R"([{"backendRefs":[{"name":"a","weight":1},{"name":"b","weight":1}]}])";
  const auto weights = [&](uint32_t share) {
    const auto made = weight_patch(route(rules), {{"a", 1'000'000 - share}, {"b", share}});
    std::string all;
    for (const json::value& change : *made)
      if (const json::value& value = change.at("value"); value.is_int64()) all += std::to_string(value.as_int64()) + " ";
    return all;
  };
  EXPECT_EQ(weights(250'000), "75 25 ");
  EXPECT_EQ(weights(5'000), "995 5 ");
  EXPECT_EQ(weights(123), "999877 123 ");
}

TEST(RouteWeights, RulesWithoutEachBackendOnceAreLeftAlone) {
  EXPECT_EQ(patch(R"([{"backendRefs":[{"name":"b"}]},{"filters":[]},{"backendRefs":[{"name":"a","weight":1},{"name":"b","weight":1}]},
                      {"backendRefs":[{"name":"a"},{"name":"a"},{"name":"b"}]}])",
                  {{"a", 900'000}, {"b", 100'000}}),
            version_and(R"({"op":"add","path":"/spec/rules/2/backendRefs/0/weight","value":90},)"
                        R"({"op":"add","path":"/spec/rules/2/backendRefs/1/weight","value":10})"));
}

TEST(RouteWeights, ABackendWithoutAShareMayBeMissing) {
  EXPECT_EQ(patch(R"([{"backendRefs":[{"name":"a","weight":75},{"name":"b","weight":25}]}])", {{"a", 1'000'000}, {"b", 0}, {"c", 0}}),
            version_and(R"({"op":"add","path":"/spec/rules/0/backendRefs/0/weight","value":100},)"
                        R"({"op":"add","path":"/spec/rules/0/backendRefs/1/weight","value":0})"))
      << "a rollback is written, although version c is not in the route yet";
  EXPECT_EQ(patch(R"([{"backendRefs":[{"name":"a"},{"name":"b"}]}])", {{"a", 900'000}, {"b", 0}, {"c", 100'000}}),
            "refused: no rule has the backend 'c'");
}

TEST(RouteWeights, NamesTheBackendsThatAreMissing) {
  EXPECT_EQ(patch(R"([{"backendRefs":[{"name":"a"},{"name":"c"}]}])", {{"a", 900'000}, {"b", 100'000}}),
            "refused: no rule has the backend 'b'");
  EXPECT_EQ(patch("[]", {{"a", 900'000}, {"b", 100'000}}), "refused: no rule has the backend 'a', 'b'");
  EXPECT_EQ(patch(R"([{"backendRefs":[{"name":"a"}]},{"backendRefs":[{"name":"b"}]}])", {{"a", 900'000}, {"b", 100'000}}),
            "refused: no rule has each of the backends once");
  EXPECT_FALSE(weight_patch({}, {{"a", 1'000'000}}));
  EXPECT_FALSE(weight_patch(json::parse(R"({"spec":{"rules":[1,{"backendRefs":[1,{}]}]}})").as_object(), {{"a", 1'000'000}}));
}

}  // namespace
}  // namespace serin::router
