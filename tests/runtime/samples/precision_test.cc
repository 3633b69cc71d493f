// precision_test.cc: what `precision: auto` runs and what it decides on. Two backends that compute alike stand for the two precisions where the machine has one.

#include "runtime/samples/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/backend.h"

namespace serin::samples {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Precision : public testing::Test {
 protected:
  std::shared_ptr<engine::Model> digits(const std::string& version) {
    auto model = engine::Model::load(SERIN_MODELS "/digits/" + version + "/model.onnx", *backend_, {});
    EXPECT_TRUE(model) << model.error().message;
    return *model;
  }
  std::shared_ptr<engine::Model> parsed(std::string_view text) {
    auto model = engine::Model::from_graph(*graph::parse(text), *backend_, {});
    EXPECT_TRUE(model) << model.error().message;
    return *model;
  }
  static Candidate candidate(std::string precision, std::shared_ptr<engine::Model> model) {
    return {std::move(precision), [model] { return Result<std::shared_ptr<engine::Model>>(model); }};
  }
  Result<PrecisionDecision> decide(engine::Model& exact, const std::vector<Candidate>& candidates) {
    return decide_precision(exact, candidates, *made_up_samples(exact, {}, 1));
  }
  std::unique_ptr<kernels::Backend> backend_ = kernels::make_cpu_backend({.onednn_path = "none"});
};

TEST_F(Precision, StoredSamplesAreTheInputsOfTheDataSets) {
  const auto model = digits("1");
  const auto samples = stored_samples(SERIN_TEST_DATA "/digits_1", *model);
  ASSERT_TRUE(samples) << samples.error().message;
  ASSERT_FALSE(samples->inputs.empty());
  EXPECT_EQ(samples->inputs[0][0].tensor->shape[1], 64);
  EXPECT_THAT(samples->source, HasSubstr("digits_1"));
  EXPECT_EQ(stored_samples("/nowhere", *model).error().code, Code::kNotFound);
}

TEST_F(Precision, EveryFourthSampleIsKeptForComparing) {
  Samples samples{std::vector<std::vector<engine::Value>>(9), "somewhere"};
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(is_judged(samples, i), i == 3 || i == 7) << i;
    EXPECT_NE(is_judged(samples, i), is_fitted(samples, i)) << i;
  }
  EXPECT_EQ(judged(samples).inputs.size(), 2U);
  samples.inputs.resize(3);
  EXPECT_TRUE(is_judged(samples, 0) && is_fitted(samples, 0)) << "three are too few to part";
  EXPECT_EQ(judged(samples).inputs.size(), 3U);
}

TEST_F(Precision, MadeUpSamplesHaveTheSizesGivenAndSomeForTheRest) {
  const auto model = parsed("x: f32[n,seq,4]\ny = Relu(x)\nreturn y");
  const auto samples = made_up_samples(*model, {{"seq", 5}}, 2);
  ASSERT_TRUE(samples) << samples.error().message;
  EXPECT_EQ(samples->inputs[0][0].tensor->shape, (Shape{2, 5, 4}));
  EXPECT_EQ((*made_up_samples(*model, {}, 1)).inputs[0][0].tensor->shape, (Shape{1, 16, 4}));
}

TEST_F(Precision, AnErrorAboveTheAllowedOneKeepsFp32) {
  const auto exact = parsed("x: f32[n,4]\ny = Mul(x, 1.0)\nreturn y"), off = parsed("x: f32[n,4]\ny = Mul(x, 1.02)\nreturn y");
  const auto decision = decide(*exact, {candidate("bf16", off)});
  ASSERT_TRUE(decision) << decision.error().message;
  EXPECT_EQ(decision->precision, "fp32");
  EXPECT_THAT(decision->why, StartsWith("fp32: bf16 differs by 0.02 and takes "));
  EXPECT_THAT(decision->why, HasSubstr("(allowed: 0.01, relative L2, the worst of 3 made-up inputs)"));
}

TEST_F(Precision, OneThatIsFasterAndCloseEnoughIsKept) {
  const auto fast = parsed("x: f32[n,64]\ny = Mul(x, 1.001)\nreturn y"), far = parsed("x: f32[n,64]\ny = Mul(x, 1.5)\nreturn y");
  const auto exact = parsed(
      "x: f32[n,64]\na = MatMul(x, w1[64,2048])\nb = MatMul(a, w2[2048,2048])\nd = Mul(b, 0.0)\ne = ReduceMax(d, i64{1}, keepdims=1)\ny = "
      "Add(x, e)\nreturn y");
  const auto decision = decide(*exact, {candidate("fp16", fast), candidate("bf16", far)});
  ASSERT_TRUE(decision) << decision.error().message;
  EXPECT_EQ(decision->precision, "fp16") << decision->why;
}

TEST_F(Precision, ACandidateThatCannotBeLoadedIsNamedAndLeftOut) {
  const auto exact = parsed("x: f32[n,4]\ny = Mul(x, 1.0)\nreturn y");
  const Candidate none{"tf32", [] { return Result<std::shared_ptr<engine::Model>>(Error{Code::kUnsupported, "no such machine"}); }};
  const auto decision = decide(*exact, {none});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->precision, "fp32");
  EXPECT_THAT(decision->why, HasSubstr("tf32 cannot run: no such machine; "));
}

TEST_F(Precision, ANotANumberIsTheWorstError) {
  const auto exact = parsed("x: f32[n,4]\ny = Mul(x, 1.0)\nreturn y"), broken = parsed("x: f32[n,4]\ny = Log(x)\nreturn y");
  EXPECT_EQ(decide(*exact, {candidate("bf16", broken)})->precision, "fp32");
}

TEST_F(Precision, WhatComesAfterANotANumberDoesNotHideIt) {
  const auto exact = parsed("x: f32[n,4]\ny = Mul(x, 1.0)\nz = Relu(x)\nreturn y, z");
  const auto broken = parsed("x: f32[n,4]\ny = Log(x)\nz = Relu(x)\nreturn y, z");
  const Samples samples = *made_up_samples(*exact, {}, 1);
  std::vector<std::vector<engine::Value>> wanted;
  for (const auto& inputs : samples.inputs) wanted.push_back(*exact->run(inputs));
  EXPECT_EQ(*worst_error(*exact, samples, wanted), 0);
  EXPECT_TRUE(std::isnan(*worst_error(*broken, samples, wanted)));
}

TEST_F(Precision, SamplesThatDoNotFitAreAnError) {
  const auto model = digits("1"), other = parsed("x: f32[n,4]\ny = Relu(x)\nreturn y");
  const auto decision = decide_precision(*model, {}, *made_up_samples(*other, {}, 1));
  ASSERT_FALSE(decision);
  EXPECT_THAT(decision.error().message, HasSubstr("pixels"));
}

}  // namespace
}  // namespace serin::samples
