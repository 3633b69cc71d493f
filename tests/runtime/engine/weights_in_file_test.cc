// Weights that kernels have packed are not in memory a second time. Whoever packs them anew reads them from the file again: the file that was
// loaded, or an error, whatever has happened to its name since.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "kernels/float16.h"
#include "runtime/formats/onnx/onnx.h"
#include "tests/runtime/engine/support.h"
#include "tests/runtime/formats/onnx/encode.h"

namespace serin::engine {
namespace {

namespace fs = std::filesystem;
using formats::Encoder;

std::vector<float> numbers(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = (static_cast<float>(seed >> 16) / 65536.f - .5f) / 8;
  }
  return values;
}

Encoder weight(std::string_view name, const std::vector<int64_t>& dims, uint32_t seed) {
  size_t count = 1;
  for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
  return formats::f32(name, dims, numbers(count, seed));
}

/// Two products, a convolution with a normalisation that is folded into it, and a table that is read plain. With two sizes that are open, no
/// plan is kept from loading it: the first executor packs.
Encoder network(uint32_t seed) {
  using formats::node, formats::value;
  const Encoder norm = node("BatchNormalization", "norm", {"conv", "gamma", "beta", "mean", "var"}, {"normed"});
  return formats::model(
      17,
      formats::GraphParts{
          .nodes = {node("Conv", "conv", {"image", "filters"}, {"conv"}, {formats::attribute("pads", std::vector<int64_t>{1, 1, 1, 1})}),
                    norm, node("GlobalAveragePool", "pool", {"normed"}, {"pooled"}), node("Flatten", "flat", {"pooled"}, {"features"}),
                    node("MatMul", "first", {"features", "w"}, {"h"}), node("Gather", "embed", {"table", "words"}, {"rows"}),
                    node("Add", "sum", {"h", "rows"}, {"s"}), node("MatMul", "second", {"s", "v"}, {"y"})},
          .initializers = {weight("filters", {64, 64, 3, 3}, seed), weight("gamma", {64}, seed + 1), weight("beta", {64}, seed + 2),
                           weight("mean", {64}, seed + 3), formats::f32("var", {64}), weight("w", {64, 512}, seed + 4),
                           weight("table", {100, 512}, seed + 5), weight("v", {512, 64}, seed + 6)},
          .inputs = {value("image", {"batch", "64", "side", "side"}), value("words", {"batch"}, 7)},
          .outputs = {value("y", {"batch", "64"})}});
}

graph::Bindings sizes(int64_t batch) { return {{"batch", batch}, {"side", 8}}; }

std::vector<test::Tensor> inputs_of(int64_t batch) {
  std::vector<int64_t> words;
  for (int64_t i = 0; i < batch; ++i) words.push_back(i * 7 % 100);
  return {test::random_tensor(Shape{batch, 64, 8, 8}, 3), test::Tensor(Shape{batch}, words)};
}

/// The model with its weights in memory, on reference kernels.
std::shared_ptr<Model> from_memory(std::string_view bytes) {
  auto graph = formats::read(bytes);
  EXPECT_TRUE(graph) << graph.error().message;
  if (!graph) return nullptr;
  const auto model = Model::from_graph(*std::move(graph), test::reference(), {});
  EXPECT_TRUE(model) << model.error().message;
  return model ? *model : nullptr;
}

class WeightsInFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "serin_weights_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    write(path(), network(1).str());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path() const { return folder_ / "model.onnx"; }
  static void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  /// As if a while had passed: some file systems tell times that are milliseconds apart from each other no better.
  static void touch(const fs::path& path) { fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(2)); }

  /// One plan at a time, so that whatever a plan packed goes with it.
  std::shared_ptr<Model> load(const kernels::Backend& backend = test::best(), int threads = 1) const {
    auto model = Model::load(path(), backend, {.threads = threads, .max_plans = 1});
    EXPECT_TRUE(model) << model.error().message;
    return model ? *model : nullptr;
  }

  /// What a model says whose constants are all in memory.
  static std::vector<test::Tensor> expected(int64_t batch, uint32_t seed = 1) {
    const auto model = from_memory(network(seed).str());
    return model ? answers(*model, batch) : std::vector<test::Tensor>();
  }
  static std::vector<test::Tensor> answers(Model& model, int64_t batch) {
    const auto executor = model.executor(sizes(batch));
    EXPECT_TRUE(executor) << executor.error().message;
    return executor ? test::run(**executor, inputs_of(batch)) : std::vector<test::Tensor>();
  }
  static void expect_right(Model& model, int64_t batch) {
    const auto actual = answers(model, batch);
    ASSERT_EQ(actual.size(), 1u);
    test::expect_near(actual[0].view(), expected(batch)[0].view(), "batch " + std::to_string(batch));
  }

  fs::path folder_;
};

/// Names of the large constants that are in memory.
std::vector<std::string> plain_weights(const Model& model) {
  std::vector<std::string> names;
  for (size_t i = 0; i < model.graph().value_capacity(); ++i) {
    const graph::Value& value = model.graph().value(static_cast<graph::ValueId>(i));
    if (value.constant && value.constant->bytes() >= graph::kWorthARecipe && value.constant->data_in_memory()) names.push_back(value.name);
  }
  return names;
}

TEST_F(WeightsInFile, PackedOnesAreNotInMemoryAsWell) {
  if (kernels::best_isa() == kernels::Isa::kScalar) GTEST_SKIP() << "kernels without vectors read convolutions plain";
  const auto model = load();
  ASSERT_TRUE(model);
  EXPECT_EQ(plain_weights(*model), std::vector<std::string>()) << "no plan is left";
  expect_right(*model, 3);
  EXPECT_EQ(plain_weights(*model), std::vector<std::string>{"table"});
  expect_right(*model, 9);
  EXPECT_EQ(plain_weights(*model), std::vector<std::string>{"table"});
}

TEST_F(WeightsInFile, EveryBackendGivesTheSame) {
  for (const kernels::Backend* backend : {&test::reference(), &test::best()}) {
    for (const int threads : {1, 3}) {
      const auto model = load(*backend, threads);
      ASSERT_TRUE(model);
      for (const int64_t batch : {1, 2, 8}) expect_right(*model, batch);
    }
  }
}

TEST_F(WeightsInFile, ARenamedFileIsAnother) {
  const auto model = load();
  ASSERT_TRUE(model);
  write(folder_ / "new", network(50).str());
  fs::rename(folder_ / "new", path());
  expect_right(*model, 2);
  expect_right(*model, 5);
  fs::remove(path());
  expect_right(*model, 6);
}

TEST_F(WeightsInFile, OneWrittenOverIsNamedWhereItWouldBeRead) {
  for (const bool shorter : {false, true}) {
    write(path(), network(1).str());
    const auto model = load();
    ASSERT_TRUE(model);
    if (shorter)
      fs::resize_file(path(), 200'000);
    else
      write(path(), network(50).str());
    touch(path());
    for (int time = 0; time < 2; ++time) {
      const auto executor = model->executor(sizes(2));
      ASSERT_FALSE(executor);
      EXPECT_EQ(executor.error().code, Code::kUnavailable);
      EXPECT_EQ(executor.error().message, path() + ": was written to since it was opened; write a new version next to it and rename it");
    }
  }
}

TEST_F(WeightsInFile, PlansGoOnWhenItIsWrittenOver) {
  const auto model = load();
  ASSERT_TRUE(model);
  const auto executor = model->executor(sizes(4));
  ASSERT_TRUE(executor);
  const auto before = test::run(**executor, inputs_of(4));
  write(path(), network(50).str());
  touch(path());
  EXPECT_EQ(test::run(**executor, inputs_of(4))[0].values<float>(), before[0].values<float>());
  EXPECT_EQ(answers(*model, 4)[0].values<float>(), before[0].values<float>()) << "a plan that is there";
}

TEST_F(WeightsInFile, ThreadsPlanAtOnceWhileAnotherRuns) {
  const auto model = load(test::best(), 2);
  ASSERT_TRUE(model);
  const auto wanted = expected(4);
  std::atomic<bool> done = false;
  std::jthread runner([&] {
    const auto executor = model->executor(sizes(4));
    ASSERT_TRUE(executor);
    do {
      test::expect_near(test::run(**executor, inputs_of(4))[0].view(), wanted[0].view(), "while others plan");
    } while (!done);
  });
  {
    std::vector<std::jthread> planners;
    for (int64_t thread = 0; thread < 3; ++thread) {
      planners.emplace_back([&, thread] {
        for (int64_t batch = 1; batch <= 6; ++batch) ASSERT_TRUE(model->executor(sizes(1 + (batch + 2 * thread) % 6)));
      });
    }
  }
  done = true;
}

TEST_F(WeightsInFile, TheFileIsClosedWithTheModel) {
  const auto descriptors = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()); };
  const auto before = descriptors();
  auto model = load();
  ASSERT_TRUE(model);
  EXPECT_EQ(descriptors(), before + 1);
  model.reset();
  EXPECT_EQ(descriptors(), before);
}

TEST_F(WeightsInFile, ElementsThatAFilePacksAreSpreadEachTime) {
  std::string bools(100'000, '\0'), nibbles(100'000, '\0');
  for (size_t i = 0; i < bools.size(); ++i) bools[i] = static_cast<char>(i % 3 * 20), nibbles[i] = static_cast<char>(i * 37);
  using formats::node, formats::value, formats::tensor;
  const std::string bytes =
      formats::model(21,
                     formats::GraphParts{.nodes = {node("Identity", "a", {"flags"}, {"x"}), node("Identity", "b", {"small"}, {"y"})},
                                         .initializers = {tensor("flags", 9, {100'000}, bools), tensor("small", 22, {200'000}, nibbles)},
                                         .outputs = {value("x", {"100000"}, 9), value("y", {"200000"}, 22)}})
          .str();
  write(path(), bytes);
  const auto from_file = formats::read_onnx(path()), from_memory = formats::read(bytes);
  ASSERT_TRUE(from_file && from_memory);
  size_t compared = 0;
  for (size_t i = 0; i < from_file->value_capacity(); ++i) {
    const auto id = static_cast<graph::ValueId>(i);
    const graph::ConstantPtr a = from_file->constant(id), b = from_memory->constant(id);
    if (!a) continue;
    EXPECT_FALSE(a->data_in_memory());
    EXPECT_TRUE(b->data_in_memory());
    for (int time = 0; time < 2; ++time) EXPECT_EQ(std::memcmp(a->data().get(), b->data().get(), a->bytes()), 0);
    ++compared;
  }
  EXPECT_GE(compared, 2u);
}

TEST_F(WeightsInFile, WhatIsComputedFromThemIsNotKeptEither) {
  if (kernels::best_isa() == kernels::Isa::kScalar) GTEST_SKIP() << "kernels without vectors read products plain";
  using formats::node, formats::value;
  const std::string bytes =
      formats::model(17,
                     formats::GraphParts{.nodes = {node("Transpose", "turn", {"w"}, {"t"}), node("MatMul", "product", {"x", "t"}, {"y"})},
                                         .initializers = {weight("w", {300, 200}, 4)},
                                         .inputs = {value("x", {"rows", "200"})},
                                         .outputs = {value("y", {"rows", "300"})}})
          .str();
  write(path(), bytes);
  const auto wanted = from_memory(bytes);
  ASSERT_TRUE(wanted);
  const auto model = load();
  ASSERT_TRUE(model);
  EXPECT_EQ(plain_weights(*model), std::vector<std::string>());
  for (const int64_t rows : {1, 40, 2}) {
    const std::vector<test::Tensor> x{test::random_tensor(Shape{rows, 200}, 5)};
    const auto actual = model->executor({{"rows", rows}}), right = wanted->executor({{"rows", rows}});
    ASSERT_TRUE(actual && right);
    test::expect_near(test::run(**actual, x)[0].view(), test::run(**right, x)[0].view(), "rows");
    EXPECT_EQ(plain_weights(*model), std::vector<std::string>());
  }
}

TEST_F(WeightsInFile, WidenedOnesAreNotKeptEither) {
  if (kernels::best_isa() == kernels::Isa::kScalar) GTEST_SKIP() << "kernels without vectors read products plain";
  using formats::node, formats::value, formats::attribute;
  const std::vector<float> floats = numbers(300 * 200, 4);
  std::string halves;
  for (const float number : floats) {
    const uint16_t bits = kernels::to_half(number).bits;
    halves.append({static_cast<char>(bits & 0xff), static_cast<char>(bits >> 8)});
  }
  const std::string bytes =
      formats::model(17, formats::GraphParts{.nodes = {node("Cast", "in", {"x"}, {"h"}, {attribute("to", int64_t{10})}),
                                                       node("MatMul", "product", {"h", "w"}, {"p"}),
                                                       node("Cast", "out", {"p"}, {"y"}, {attribute("to", int64_t{1})})},
                                             .initializers = {formats::tensor("w", 10, {200, 300}, halves)},
                                             .inputs = {value("x", {"rows", "200"})},
                                             .outputs = {value("y", {"rows", "300"})}})
          .str();
  write(path(), bytes);
  const auto model = load();
  ASSERT_TRUE(model);
  for (const int64_t rows : {1, 40, 2}) {
    const test::Tensor x = test::random_tensor(Shape{rows, 200}, 5);
    std::vector<float> wanted(static_cast<size_t>(rows * 300));
    for (size_t i = 0; i < wanted.size(); ++i) {
      double sum = 0;
      for (size_t k = 0; k < 200; ++k)
        sum += static_cast<double>(x.values<float>()[i / 300 * 200 + k]) * kernels::to_float(kernels::to_half(floats[k * 300 + i % 300]));
      wanted[i] = static_cast<float>(sum);
    }
    const auto executor = model->executor({{"rows", rows}});
    ASSERT_TRUE(executor);
    test::expect_near(test::run(**executor, {x})[0].view(), test::Tensor(Shape{rows, 300}, wanted).view(), "rows");
    EXPECT_EQ(plain_weights(*model), std::vector<std::string>());
  }
}

TEST_F(WeightsInFile, AFileBesideTheModelIsNamed) {
  using formats::node, formats::value;
  const auto external = [](std::string_view name, const std::string& file, std::vector<int64_t> dims) {
    Encoder out;
    for (const int64_t dim : dims) out.number(1, dim);
    return out.number(2, 1).bytes(8, name).message(13, Encoder().bytes(1, "location").bytes(2, file)).number(14, 1);
  };
  constexpr int kFiles = 20;  // more than are kept open
  formats::GraphParts parts{
      .nodes = {}, .initializers = {}, .inputs = {value("x", {"batch", "side", "150"})}, .outputs = {value("y", {"batch", "side", "150"})}};
  for (int i = 0; i < kFiles; ++i) {
    const std::string w = "w" + std::to_string(i);
    write(folder_ / w, formats::raw_bytes(numbers(150 * 150, static_cast<uint32_t>(i))));
    parts.initializers.push_back(external(w, w, {150, 150}));
    parts.nodes.push_back(
        node("MatMul", "m" + w, {i == 0 ? "x" : "h" + std::to_string(i - 1), w}, {i + 1 == kFiles ? "y" : "h" + std::to_string(i)}));
  }
  write(path(), formats::model(17, parts).str());
  const auto model = load();
  ASSERT_TRUE(model);
  EXPECT_EQ(plain_weights(*model).size(), 4u) << "those that were read at once";
  write(folder_ / "w3", formats::raw_bytes(numbers(150 * 150, 99)));
  touch(folder_ / "w3");
  const auto executor = model->executor(sizes(2));
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().message,
            "external data 'w3': was written to since it was opened; write a new version next to it and rename it");
}

TEST_F(WeightsInFile, ALoopReadsItsWeightsOnce) {
  using formats::node, formats::value, formats::attribute;
  const Encoder body =
      formats::graph({.nodes = {node("MatMul", "product", {"state", "w"}, {"next"}), node("Identity", "go", {"more"}, {"on"})},
                      .initializers = {},
                      .inputs = {value("turn", {}, 7), value("more", {}, 9), value("state", {"2", "200"})},
                      .outputs = {value("on", {}, 9), value("next", {"2", "200"})}});
  const std::string bytes =
      formats::model(
          17, formats::GraphParts{.nodes = {node("Loop", "loop", {"turns", "", "x"}, {"y"}, {formats::graph_attribute("body", body)})},
                                  .initializers = {weight("w", {200, 200}, 4)},
                                  .inputs = {value("turns", {}, 7), value("x", {"2", "200"})},
                                  .outputs = {value("y", {"2", "200"})}})
          .str();
  write(path(), bytes);
  const auto wanted = from_memory(bytes);
  ASSERT_TRUE(wanted);
  const auto model = load();
  ASSERT_TRUE(model);
  const test::Tensor x = test::random_tensor(Shape{2, 200}, 9);
  const int64_t turns = 3;
  const std::vector<Value> inputs{Value::of(graph::make_constant(DType::kInt64, Shape{}, &turns)),
                                  Value::of(graph::make_constant(DType::kFloat32, x.view().shape, x.view().data))};
  for (int time = 0; time < 2; ++time) {
    const auto actual = model->run(inputs), right = wanted->run(inputs);
    ASSERT_TRUE(actual) << actual.error().message;
    ASSERT_TRUE(right) << right.error().message;
    test::expect_near(view_of(*(*actual)[0].tensor), view_of(*(*right)[0].tensor), "loop");
  }
}

}  // namespace
}  // namespace serin::engine
