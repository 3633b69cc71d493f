// A model that has no plan behind the server: what a run sizes itself, strings, and results that outlive the request.

#include "runtime/serving/scheduling/instance.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <cstring>

namespace serin::serving {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const kernels::Backend& backend() {
  static const auto cpu = kernels::make_cpu_backend({.onednn_path = "none"});
  return *cpu;
}

std::shared_ptr<engine::Model> model_of(std::string_view text) {
  auto graph = graph::parse(text);
  EXPECT_TRUE(graph) << graph.error().message;
  auto model = engine::Model::from_graph(std::move(*graph), backend(), {});
  EXPECT_TRUE(model) << model.error().message;
  return *model;
}

std::shared_ptr<Job> job_of(const std::vector<float>& x) {
  auto job = std::make_shared<Job>();
  job->memory = AlignedBuffer(x.size() * sizeof(float) + 1);
  std::memcpy(job->memory.data(), x.data(), x.size() * sizeof(float));
  job->inputs.push_back({DType::kFloat32, Shape{static_cast<int64_t>(x.size())}, job->memory.data()});
  return job;
}

TEST(Instance, ResultsHaveTheSizesThatTheRunGaveThem) {
  const auto model = model_of("x: f32[n]\nr = Reshape(x, i64{-1,1})\np = NonZero(r)\nt = Transpose(p)\nreturn t\n");
  ASSERT_FALSE(model->planned());
  Instance instance(model, {});
  for (const auto& [x, rows] : {std::pair(std::vector<float>{0, 1, 2}, int64_t{2}), {{0, 0}, 0}, {{5, 0, 5, 5}, 3}}) {
    const std::shared_ptr<Job> jobs[] = {job_of(x)};
    const auto ran = instance.run(jobs);
    ASSERT_TRUE(ran.status) << ran.status.error().message;
    EXPECT_EQ(ran.outputs(0).tensors[0].shape, (Shape{rows, 2}));
    EXPECT_EQ(ran.bucket_rows, 1);
  }
}

TEST(Instance, AResultThatIsAViewOfTheRequestKeepsIt) {
  const auto model = model_of("x: f32[n]\ns: i64[r]\ny = Reshape(x, s)\nreturn y\n");
  Instance instance(model, {});
  auto job = job_of({1, 2, 3, 4});
  std::vector<int64_t> target = {2, 2};
  job->inputs.push_back({DType::kInt64, Shape{2}, target.data()});
  Instance::RunResult ran;
  {
    const std::shared_ptr<Job> jobs[] = {std::move(job)};
    ran = instance.run(jobs);
  }
  ASSERT_TRUE(ran.status) << ran.status.error().message;
  const auto y = ran.outputs(0).tensors[0].span<const float>();
  EXPECT_THAT(std::vector<float>(y.begin(), y.end()), ElementsAre(1, 2, 3, 4));
}

TEST(Instance, StringsGoInAndOut) {
  const auto model = model_of("x: str[a,b]\nt = Transpose(x)\nreturn t\n");
  Instance instance(model, {});
  auto job = std::make_shared<Job>();
  job->texts = {{"a", "b", "c", "a string that is too long to be held in place"}};
  job->inputs.push_back({DType::kString, Shape{2, 2}, job->texts[0].data()});
  const std::shared_ptr<Job> jobs[] = {std::move(job)};
  const auto ran = instance.run(jobs);
  ASSERT_TRUE(ran.status) << ran.status.error().message;
  const auto t = ran.outputs(0).tensors[0].span<const std::string>();
  EXPECT_THAT(std::vector<std::string>(t.begin(), t.end()), ElementsAre("a", "c", "b", "a string that is too long to be held in place"));
}

/// Texts and numbers of `rows` rows, from `first` on.
std::shared_ptr<Job> texts_and_numbers(int64_t first, int64_t rows) {
  auto job = std::make_shared<Job>();
  job->rows = rows;
  job->texts.emplace_back();
  job->memory = AlignedBuffer(static_cast<size_t>(rows) * 2 * sizeof(float));
  auto* const numbers = reinterpret_cast<float*>(job->memory.data());
  for (int64_t row = 0; row < rows; ++row) {
    job->texts[0].push_back("a text that is too long to be held in place, number " + std::to_string(first + row));
    for (int64_t i = 0; i < 2; ++i) numbers[row * 2 + i] = static_cast<float>(10 * (first + row) + i);
  }
  job->inputs = {{DType::kString, Shape{rows}, job->texts[0].data()}, {DType::kFloat32, Shape{rows, 2}, numbers}};
  return job;
}

TEST(Instance, RowsOfTextsShareARun) {
  const auto model =
      model_of("t: str[n]\nx: f32[n,2]\nu = ChangeCase(t, to=\"UPPER\")\ny = Mul(x, 2.0)\nz = Unsqueeze(y, axes=[1])\nreturn u, z\n");
  ASSERT_FALSE(model->planned());
  ASSERT_TRUE(model->batchable().yes) << model->batchable().why_not;
  Instance instance(model, {.max_batch = 8});
  const std::shared_ptr<Job> jobs[] = {texts_and_numbers(1, 1), texts_and_numbers(5, 3), texts_and_numbers(9, 1)};
  const auto ran = instance.run(jobs);
  ASSERT_TRUE(ran.status) << ran.status.error().message;
  EXPECT_EQ(ran.bucket_rows, 8) << "rows are filled up, so that few sizes are planned";
  for (size_t job = 0; job < 3; ++job) {
    const int64_t rows = jobs[job]->rows;
    const auto outputs = ran.outputs(job).tensors;
    ASSERT_EQ(outputs.size(), 2U);
    EXPECT_EQ(outputs[0].shape, Shape{rows});
    EXPECT_EQ(outputs[1].shape, (Shape{rows, 1, 2}));
    for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
      std::string upper = jobs[job]->texts[0][row];
      for (char& c : upper) c = static_cast<char>(std::toupper(c));
      EXPECT_EQ(outputs[0].span<const std::string>()[row], upper);
      for (size_t i = row * 2; i < row * 2 + 2; ++i)
        EXPECT_EQ(outputs[1].span<const float>()[i], 2 * jobs[job]->inputs[1].span<const float>()[i]);
    }
  }
}

TEST(Instance, WhatFillsUpARunIsARowThatItHas) {
  // Division by zero fails, and so would rows of zeros.
  const auto model = model_of("t: str[n]\nx: i32[n]\nd = Div(i32[]{12}, x)\nreturn d, t\n");
  ASSERT_TRUE(model->batchable().yes && !model->planned()) << model->batchable().why_not;
  Instance instance(model, {.max_batch = 8});
  std::vector<std::shared_ptr<Job>> jobs;
  std::vector<int32_t> numbers = {3, 4, 6};
  for (int32_t& number : numbers) {
    auto job = std::make_shared<Job>();
    job->texts = {{"text"}};
    job->inputs = {{DType::kString, Shape{1}, job->texts[0].data()}, {DType::kInt32, Shape{1}, &number}};
    jobs.push_back(std::move(job));
  }
  const auto ran = instance.run(jobs);
  ASSERT_TRUE(ran.status) << ran.status.error().message;
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(ran.outputs(i).tensors[0].span<const int32_t>()[0], 12 / numbers[i]);
}

TEST(Instance, PaddedJobsAnswerAsTheyWouldAlone) {
  const auto model = model_of(
      "x: f32[n,s,2]\nmask: f32[n,s]\nc = Unsqueeze(mask, axes=[2])\nm = Mul(x, c)\ntotal = ReduceSum(m, axes=[1], keepdims=0)\n"
      "y = Mul(x, 2.0)\nt = Transpose(y, perm=[0,2,1])\nreturn t, total\n");
  ASSERT_TRUE(model->batchable().yes) << model->batchable().why_not;
  Instance instance(model, {.max_batch = 8});
  const auto job_with = [](int64_t rows, int64_t length, float first) {
    auto job = std::make_shared<Job>();
    job->rows = rows;
    job->memory = AlignedBuffer(1024);
    auto* const x = reinterpret_cast<float*>(job->memory.data());
    float* const mask = x + 64;
    for (int64_t i = 0; i < rows * length * 2; ++i) x[i] = first + static_cast<float>(i);
    for (int64_t i = 0; i < rows * length; ++i) mask[i] = 1;
    job->inputs = {{DType::kFloat32, {rows, length, 2}, x}, {DType::kFloat32, {rows, length}, mask}};
    job->sizes = {{"n", rows}, {"s", length}};
    if (length != 4) job->padded["s"] = 4;
    return job;
  };
  const std::shared_ptr<Job> jobs[] = {job_with(1, 3, 1), job_with(2, 4, 100), job_with(2, 1, 50)};
  const auto ran = instance.run(jobs);
  ASSERT_TRUE(ran.status) << ran.status.error().message;
  EXPECT_EQ(ran.bucket_rows, 8);
  for (size_t i = 0; i < 3; ++i) {
    auto alone = std::make_shared<Job>();
    alone->inputs = jobs[i]->inputs;
    alone->rows = jobs[i]->rows;
    const std::shared_ptr<Job> one[] = {alone};
    const auto expected = instance.run(one);
    ASSERT_TRUE(expected.status) << expected.status.error().message;
    for (size_t output = 0; output < 2; ++output) {
      const TensorView &got = ran.outputs(i).tensors[output], &wanted = expected.outputs(0).tensors[output];
      EXPECT_EQ(got.shape, wanted.shape) << i;
      const auto a = got.span<const float>(), b = wanted.span<const float>();
      EXPECT_TRUE(std::ranges::equal(a, b)) << "job " << i << ", output " << output;
    }
  }
}

TEST(Instance, WhatIsNotReadyIsNotMadeWhereThatTakesTooLong) {
  const auto model = model_of("x: f32[n]\ny = Add(x, 1.0)\nreturn y\n");
  ASSERT_TRUE(model->planned());
  Instance instance(model, {});
  const std::shared_ptr<Job> three[] = {job_of({1, 2, 3})}, two[] = {job_of({1, 2})};
  three[0]->rows = 3;
  two[0]->rows = 2;
  EXPECT_FALSE(instance.run(three, /*only_if_ready=*/true).ready);
  EXPECT_TRUE(instance.run(three).status);
  const auto ran = instance.run(three, /*only_if_ready=*/true);
  ASSERT_TRUE(ran.ready && ran.status);
  const auto y = ran.outputs(0).tensors[0].span<const float>();
  EXPECT_THAT(std::vector<float>(y.begin(), y.end()), ElementsAre(2, 3, 4));
  EXPECT_FALSE(instance.run(two, /*only_if_ready=*/true).ready);
}

TEST(Instance, TheSizeThatWasUsedLongestAgoMakesRoom) {
  const auto model = model_of("x: f32[n]\ny = Add(x, 1.0)\nreturn y\n");
  Instance instance(model, {.max_batch = 8, .most_sizes = 2});
  const auto run = [&instance](int64_t rows, bool only_if_ready) {
    const std::shared_ptr<Job> jobs[] = {job_of(std::vector<float>(static_cast<size_t>(rows)))};
    jobs[0]->rows = rows;
    return instance.run(jobs, only_if_ready).ready;
  };
  for (const int64_t rows : {1, 2, 1, 4, 8}) EXPECT_TRUE(run(rows, false));
  EXPECT_TRUE(run(4, true));  // though nobody has asked for it since it was made
  EXPECT_TRUE(run(8, true));
  EXPECT_FALSE(run(1, true));
}

TEST(Instance, WhatTheRunRefusesIsTheClients) {
  const auto model = model_of("x: f32[n]\ns: i64[r]\ny = Reshape(x, s)\nreturn y\n");
  Instance instance(model, {});
  auto job = job_of({1, 2, 3});
  std::vector<int64_t> target = {2, 2};
  job->inputs.push_back({DType::kInt64, Shape{2}, target.data()});
  const std::shared_ptr<Job> jobs[] = {std::move(job)};
  const auto ran = instance.run(jobs);
  ASSERT_FALSE(ran.status);
  EXPECT_EQ(ran.status.error().code, Code::kInvalidArgument);
  EXPECT_THAT(ran.status.error().message, HasSubstr("cannot reshape [3] to [2,2]"));
}

}  // namespace
}  // namespace serin::serving
