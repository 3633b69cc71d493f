#include <gmock/gmock.h>

#include "runtime/engine/engine.h"

namespace serin::engine {
namespace {

using graph::Dim;

TensorInfo input(std::string name, DType dtype, graph::Dims dims) { return {std::move(name), dtype, {}, std::move(dims)}; }

TensorView request(DType dtype, Shape shape) { return {dtype, shape, nullptr}; }

std::string refusal(std::vector<TensorInfo> model, std::vector<TensorView> tensors) {
  const auto bindings = bindings_for(model, tensors);
  return bindings ? "accepted" : bindings.error().message;
}

const TensorInfo kPixels = input("pixels", DType::kFloat32, {Dim::symbol("batch"), 64});

TEST(BindingsFor, TakesTheSymbolsFromTheShapes) {
  const std::vector<TensorInfo> model = {input("ids", DType::kInt64, {Dim::symbol("batch"), Dim::symbol("seq")}),
                                         input("mask", DType::kInt64, {Dim::symbol("batch"), Dim::symbol("seq")})};
  const auto bindings = bindings_for(model, std::vector{request(DType::kInt64, {2, 7}), request(DType::kInt64, {2, 7})});
  ASSERT_TRUE(bindings);
  EXPECT_EQ(*bindings, (graph::Bindings{{"batch", 2}, {"seq", 7}}));
}

TEST(BindingsFor, NamesTheInputAndBothShapes) {
  EXPECT_EQ(refusal({kPixels}, {request(DType::kFloat32, {2, 65})}), "input 'pixels' expects [batch,64] FP32, the request has [2,65]");
}

TEST(BindingsFor, RefusesAnotherRank) {
  EXPECT_EQ(refusal({kPixels}, {request(DType::kFloat32, {64})}), "input 'pixels' expects [batch,64] FP32, the request has [64]");
}

TEST(BindingsFor, RefusesAnotherType) {
  EXPECT_EQ(refusal({kPixels}, {request(DType::kInt64, {2, 64})}), "input 'pixels' expects [batch,64] FP32, the request has INT64 [2,64]");
}

TEST(BindingsFor, TakesEmptyDimensionsAndRefusesNegativeOnes) {
  const TensorInfo infos[] = {kPixels};
  const TensorView empty[] = {request(DType::kFloat32, {0, 64})};
  EXPECT_EQ(bindings_for(infos, empty).value(), (graph::Bindings{{"batch", 0}}));
  EXPECT_EQ(refusal({kPixels}, {request(DType::kFloat32, {-3, 64})}),
            "input 'pixels' expects [batch,64] FP32, the request has [-3,64]: dimension 0 is negative");
}

TEST(BindingsFor, RefusesASymbolWithTwoSizes) {
  EXPECT_EQ(refusal({kPixels, input("mask", DType::kBool, {Dim::symbol("batch")})},
                    {request(DType::kFloat32, {2, 64}), request(DType::kBool, {3})}),
            "input 'mask' expects [batch] BOOL, the request has [3]: 'batch' is 2 in input 'pixels'");
}

TEST(BindingsFor, ChecksDimensionsThatFollowFromSymbols) {
  const std::vector<TensorInfo> model = {kPixels, input("pairs", DType::kFloat32, {Dim(2) * Dim::symbol("batch")})};
  EXPECT_EQ(refusal(model, {request(DType::kFloat32, {3, 64}), request(DType::kFloat32, {6})}), "accepted");
  EXPECT_EQ(refusal(model, {request(DType::kFloat32, {3, 64}), request(DType::kFloat32, {7})}),
            "input 'pairs' expects [2*batch] FP32, the request has [7]");
}

TEST(BindingsFor, CountsTheInputs) { EXPECT_EQ(refusal({kPixels}, {}), "the model has 1 inputs, the request has 0"); }

}  // namespace
}  // namespace serin::engine
