// `serin check` from the outside: exit codes and what it prints, on the fixtures whose outputs ONNX Runtime computed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>

#include "runtime/cli/commands.h"
#include "runtime/cli/tools/check.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct Answer {
  int exit_code;
  std::string out, err;
};

Answer check(CheckOptions options) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int exit_code = run_check(options);
  std::fflush(stdout);
  return {exit_code, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}
Answer check(const std::string& model, const std::string& folder) {
  CheckOptions options;
  options.model = std::string(SERIN_TEST_DATA "/") + model;
  options.folder = std::string(SERIN_TEST_DATA "/") + folder;
  return check(options);
}

TEST(Check, FixturesAgreeWithOnnxRuntime) {
  for (const auto& entry : fs::directory_iterator(SERIN_TEST_DATA)) {
    if (!fs::exists(entry.path() / "model.onnx")) continue;
    const std::string name = entry.path().filename();
    const Answer answer = check(name + "/model.onnx", name);
    EXPECT_EQ(answer.exit_code, kYes) << name << "\n" << answer.out << answer.err;
  }
}

TEST(Check, DigitsAgreeWithOnnxRuntime) {
  for (const char* version : {"1", "2", "3", "4", "5"}) {
    CheckOptions options;
    options.model = std::string(SERIN_MODELS "/digits/") + version + "/model.onnx";
    options.folder = std::string(SERIN_TEST_DATA "/digits_") + version;
    const Answer answer = check(options);
    EXPECT_EQ(answer.exit_code, kYes) << version << "\n" << answer.out << answer.err;
  }
}

TEST(Check, AnotherModelsOutputsDiffer) {
  CheckOptions options;
  options.model = SERIN_MODELS "/digits/1/model.onnx";
  options.folder = SERIN_TEST_DATA "/digits_3";
  const Answer answer = check(options);
  EXPECT_EQ(answer.exit_code, kNo);
  EXPECT_THAT(answer.out, HasSubstr("FAIL scores: f32[3,10]  largest error"));
  EXPECT_THAT(answer.out, HasSubstr("elements differ, first at [0,0]"));
  EXPECT_THAT(answer.out, HasSubstr("0 of 2 data sets agree"));
}

TEST(Check, OneDataSetByItself) {
  const Answer answer = check("nonzero/model.onnx", "nonzero/test_data_set_1");
  EXPECT_EQ(answer.exit_code, kYes) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("1 of 1 data sets agree"));
}

TEST(Check, NothingIsWithinNoTolerance) {
  CheckOptions options;
  options.model = SERIN_TEST_DATA "/attention/model.onnx";
  options.folder = SERIN_TEST_DATA "/attention";
  options.rtol = options.atol = 0;
  EXPECT_EQ(check(options).exit_code, kNo);
}

TEST(Check, AToleranceOfOneOutput) {
  CheckOptions options;
  options.model = SERIN_TEST_DATA "/attention/model.onnx";
  options.folder = SERIN_TEST_DATA "/attention";
  options.rtol = options.atol = 0;
  options.output_atol = {{"hidden", 0.1}, {"pooled", 0.1}};
  EXPECT_EQ(check(options).exit_code, kYes);
  options.output_atol = {{"nothing", 0.1}};
  const Answer unknown = check(options);
  EXPECT_EQ(unknown.exit_code, kUsage);
  EXPECT_THAT(unknown.err, HasSubstr("--output-atol nothing: the model has no such output"));
}

TEST(Check, Json) {
  CheckOptions options;
  options.model = SERIN_TEST_DATA "/conv_bn/model.onnx";
  options.folder = SERIN_TEST_DATA "/conv_bn";
  options.json = true;
  const auto json = boost::json::parse(check(options).out);
  EXPECT_TRUE(json.at("match").as_bool());
  EXPECT_EQ(json.at("data_sets").as_array().size(), 2U);
  EXPECT_EQ(json.at("data_sets").at(0).at("outputs").at(0).at("name"), "features");
}

TEST(Check, AModelThatCannotBeReadOrRun) {
  const Answer unsupported = check("bad/unknown_ops.onnx", "attention");
  EXPECT_EQ(unsupported.exit_code, kCannotRun);
  EXPECT_THAT(unsupported.err, HasSubstr("'node_b' (FrobnicateQuickly)"));
  const Answer out_of_range = check("bad/gather_out_of_range.onnx", "bad/gather_out_of_range");
  EXPECT_EQ(out_of_range.exit_code, kCannotRun);
  EXPECT_THAT(out_of_range.err, HasSubstr("the_gather"));
  EXPECT_EQ(check("absent.onnx", "attention").exit_code, kCannotRun);
}

TEST(Check, DataThatIsNotThere) {
  EXPECT_EQ(check("attention/model.onnx", "absent").exit_code, kUsage);
  const Answer no_data = check("attention/model.onnx", "bad");
  EXPECT_EQ(no_data.exit_code, kUsage);
  EXPECT_THAT(no_data.err, HasSubstr("has neither test_data_set_* folders nor an input_0"));
  EXPECT_EQ(check("attention/model.onnx", "nonzero").exit_code, kUsage);  // 1 input, the model has 3
}

}  // namespace
}  // namespace serin::cli
