// The whole engine against ONNX Runtime: every fixture, on every instruction set, with and without oneDNN, with all passes, none, and each one
// missing. What a kernel or a pass gets wrong shows here even where its own test does not look.

#include "tests/runtime/engine/fixtures.h"

#include <gmock/gmock.h>

#include "runtime/engine/optimize.h"

namespace serin::engine {
namespace {

using test::Fixture;
using PassNames = std::set<std::string, std::less<>>;

struct Setup {
  std::string name;
  kernels::CpuOptions cpu;
};

/// The plain kernels take seconds for digits_4: they get one data set, the last, which is the smallest.
Fixture shortened(Fixture fixture, const Setup& setup) {
  if (setup.cpu.reference_only) fixture.data_sets = {fixture.data_sets.back()};
  return fixture;
}

std::vector<Setup> setups() {
  std::vector<Setup> result = {{"reference", {.onednn_path = "none", .reference_only = true}}};
  for (const kernels::Isa isa : {kernels::Isa::kScalar, kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    if (isa > kernels::best_isa()) continue;
    result.push_back({std::string(kernels::isa_name(isa)), {.isa = isa, .onednn_path = "none"}});
    result.push_back({std::string(kernels::isa_name(isa)) + "_onednn", {.isa = isa}});
  }
  return result;
}

PassNames every_pass() {
  const std::vector<std::string> names = pass_names();
  return {names.begin(), names.end()};
}

void expect_outputs(const Fixture& fixture, const kernels::Backend& backend, const PassNames& disabled_passes) {
  LoadOptions options;
  options.disabled_passes = disabled_passes;
  const auto model = Model::load(fixture.model, backend, options);
  ASSERT_TRUE(model) << model.error().message;
  for (const std::string& data_set : fixture.data_sets) {
    SCOPED_TRACE(data_set);
    const auto inputs = test::read_tensors(data_set, "input"), expected = test::read_tensors(data_set, "output");
    const auto bindings = bindings_for((*model)->inputs(), test::views(inputs));
    ASSERT_TRUE(bindings) << bindings.error().message;
    const auto executor = (*model)->executor(*bindings);
    ASSERT_TRUE(executor) << executor.error().message;
    const auto outputs = test::run(**executor, inputs);
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      test::expect_near(outputs[i].view(), expected[i].view(), "output '" + (*model)->outputs()[i].name + "'");
    }
  }
}

class Fixtures : public ::testing::TestWithParam<std::tuple<Fixture, Setup>> {};

TEST_P(Fixtures, GiveWhatOnnxRuntimeGives) {
  const auto& [fixture, setup] = GetParam();
  const auto backend = kernels::make_cpu_backend(setup.cpu);
  expect_outputs(shortened(fixture, setup), *backend, {});
}

TEST_P(Fixtures, GiveTheSameWithoutPasses) {
  const auto& [fixture, setup] = GetParam();
  const auto backend = kernels::make_cpu_backend(setup.cpu);
  expect_outputs(shortened(fixture, setup), *backend, every_pass());
}

INSTANTIATE_TEST_SUITE_P(All, Fixtures, ::testing::Combine(::testing::ValuesIn(test::fixtures()), ::testing::ValuesIn(setups())),
                         [](const auto& test) { return std::get<0>(test.param).name + "_" + std::get<1>(test.param).name; });

/// On the best kernels of this machine only: what a pass does hardly depends on who computes it.
class FixturesByPass : public ::testing::TestWithParam<Fixture> {};

TEST_P(FixturesByPass, GiveTheSameWithEachPassMissing) {
  for (const std::string& pass : every_pass()) {
    SCOPED_TRACE(pass);
    expect_outputs(GetParam(), test::best(), {pass});
  }
}

INSTANTIATE_TEST_SUITE_P(All, FixturesByPass, ::testing::ValuesIn(test::fixtures()), [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace serin::engine
