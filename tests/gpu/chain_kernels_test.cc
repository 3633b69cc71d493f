// Kernels made for one chain of functions each: what chain_text() says is compiled by the host's compiler for the emulated device, in place of NVRTC, and compared
// with the reference: over types, over how operands lie, over functions. What NVRTC makes of it: tests/cuda/test_chains.py.

#include "kernels/cuda/chain_kernels.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "kernels/cuda/chain_compiled.h"
#include "kernels/cuda/table.h"
#include "tests/gpu/device_under_test.h"
#include "tests/gpu/on_device.h"

namespace serin::kernels::cuda {
namespace {

using test::Case;
using test::random_integers;
using test::random_tensor;
using test::Tensor;
using test::Tolerance;
using testing::HasSubstr;
using Step = Pointwise::Step;

constexpr DType kF32 = DType::kFloat32;

struct Checked {
  Case c;
  Tolerance tolerance;
};

Tensor as(DType dtype, const Tensor& x) {
  Tensor y(dtype, x.shape());
  for (int64_t i = 0; i < x.shape().elements(); ++i) {
    const float value = x.values<float>()[static_cast<size_t>(i)];
    if (dtype == DType::kFloat16)
      y.values<Half>()[static_cast<size_t>(i)] = to_half(value);
    else
      y.values<BFloat16>()[static_cast<size_t>(i)] = to_bfloat16(value);
  }
  return y;
}

/// min(max(a * b + c, c), 2) where a < b, else a: results that are read at once, later, and inputs read twice.
Pointwise example() {
  return {{{Binary{BinaryFn::kMul}, {0, 1}},
           {Binary{BinaryFn::kAdd}, {3, 2}},
           {Binary{BinaryFn::kMax}, {4, 2}},
           {Unary{UnaryFn::kClip, -9.f, 2.f}, {5}},
           {Binary{BinaryFn::kLess}, {0, 1}},
           {Select{}, {7, 6, 0}}}};
}

void add_places(std::vector<Checked>& all) {
  const struct {
    Shape a, b, c, y;
  } forms[] = {
      {{40, 300}, {}, {1, 1}, {40, 300}},                        // numbers; rows of no whole groups
      {{40, 304}, {304}, {40, 1}, {40, 304}},                    // a row, a column
      {{3, 5, 7, 8}, {1, 5, 1, 1}, {5, 1, 1}, {3, 5, 7, 8}},     // channels of small images
      {{2, 9, 3, 2}, {2, 1, 3, 1}, {1, 9, 1, 2}, {2, 9, 3, 2}},  // every other axis
      {{40, 1}, {1, 48}, {1}, {40, 48}},                         // a result larger than every input
      {{3, 0}, {3, 1}, {1}, {3, 0}},                             // nothing
  };
  for (const auto& form : forms)
    all.push_back({{.op = example(),
                    .inputs = {random_tensor(form.a, 1), random_tensor(form.b, 2), random_tensor(form.c, 3)},
                    .outputs = {{kF32, form.y}}},
                   {}});
}

void add_types(std::vector<Checked>& all) {
  const Shape image{2, 3, 5, 24};
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const double spacing = dtype == DType::kFloat16 ? 1. / 1024 : 1. / 128;
    for (const DType y : {dtype, kF32})
      all.push_back({{.op = example(),
                      .inputs = {as(dtype, random_tensor(image, 1)), as(dtype, random_tensor({24}, 2)), random_tensor({2, 1, 1, 24}, 3)},
                      .outputs = {{y, image}}},
                     {spacing, spacing / 64}});
  }
  const Pointwise chosen{{{Unary{UnaryFn::kNeg}, {1}}, {Select{}, {0, 1, 2}}}};
  all.push_back(
      {{.op = chosen, .inputs = {random_integers(DType::kBool, {60, 1}, 1), random_tensor({60, 72}, 2)}, .outputs = {{kF32, {60, 72}}}},
       {}});
}

void add_functions(std::vector<Checked>& all) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const UnaryFn fn : {UnaryFn::kSilu, UnaryFn::kGelu, UnaryFn::kHardSwish, UnaryFn::kErf, UnaryFn::kSoftplus, UnaryFn::kRound})
    all.push_back({{.op = Pointwise{{{Unary{fn}, {0}}, {Binary{BinaryFn::kPow}, {1, 0}}}},
                    .inputs = {random_tensor({37}, 1)},
                    .outputs = {{kF32, {37}}}},
                   {}});
  const Pointwise bounds{{{Unary{UnaryFn::kClip, -infinity, infinity}, {0}}, {Unary{UnaryFn::kLeakyRelu, 0.1f}, {1}}}};
  all.push_back({{.op = bounds, .inputs = {test::special_values({64})}, .outputs = {{kF32, {64}}}}, {}});
}

/// Every text that it is asked for in one library: the compiler is started once.
class HostCompiler {
 public:
  ~HostCompiler() {
    if (library_) ::dlclose(library_);
    std::filesystem::remove_all(folder_);
  }

  ChainCompiler collect() {
    return [this](const std::string& text, std::string& why) {
      numbers_.emplace(text, numbers_.size());
      why = "to be compiled";
      return std::nullopt;
    };
  }

  void compile() {
    std::filesystem::create_directories(folder_);
    const std::string source = folder_ + "/chains.cc", made = folder_ + "/chains.so";
    std::ofstream file(source);
    file << "#include \"kernels/cuda/chain.h\"\n";
    for (const auto& [text, number] : numbers_) {
      for (const char* const name : {kChainGroups, kChainSingles}) file << "#define " << name << " " << name << "_" << number << "\n";
      file << "namespace text_" << number << " {\n" << text << "}\n";
      for (const char* const name : {kChainGroups, kChainSingles}) file << "#undef " << name << "\n";
    }
    file.close();
    const std::string root = SERIN_SOURCE;
    // -Bsymbolic: the program has the interpreted kernel's instances of the same templates, and they would take the place of these.
    const std::string command = std::string(SERIN_CXX) + " -std=c++20 -O0 -w -fPIC -shared -Wl,-Bsymbolic -ffp-contract=off -I" + root +
                                "/tests/gpu/emulator -I" + root + " -o " + made + " " + source + " 2> " + folder_ + "/log";
    const int status = std::system(command.c_str());
    std::string log;
    std::getline(std::ifstream(folder_ + "/log"), log, '\0');
    ASSERT_EQ(status, 0) << log;
    library_ = ::dlopen(made.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library_) << ::dlerror();
  }

  ChainCompiler compiled() {
    return [this](const std::string& text, std::string& why) -> std::optional<ChainKernels> {
      const auto found = numbers_.find(text);
      if (found == numbers_.end()) {
        why = "not what was asked for before";
        return std::nullopt;
      }
      const auto function = [&](const char* name) {
        return ::dlsym(library_, (std::string(name) + "_" + std::to_string(found->second)).c_str());
      };
      return ChainKernels{function(kChainGroups), function(kChainSingles)};
    };
  }
  size_t texts() const { return numbers_.size(); }

 private:
  const std::string folder_ = testing::TempDir() + "chains." + std::to_string(::getpid());
  std::map<std::string, size_t> numbers_;
  void* library_ = nullptr;
};

KernelRow row_of(const ChainCompiler& compile) {
  return row("chain_compiled",
             [compile](const OpDesc& desc, PrepareContext&, std::string& why) { return prepare_compiled_chain(compile, desc, why); });
}

TEST(CompiledChains, AgreeWithTheReference) {
  if (!serin::test::emulated()) GTEST_SKIP() << "the plugin's own row is tested where chains are";
  if (::access(SERIN_CXX, X_OK) != 0 || ::access(SERIN_SOURCE, R_OK) != 0) GTEST_SKIP() << "no compiler and sources here";
  std::vector<Checked> all;
  add_places(all), add_types(all), add_functions(all);
  HostCompiler host;
  const KernelRow collect = row_of(host.collect());
  for (const Checked& one : all) {
    PrepareContext context;
    std::string why;
    EXPECT_FALSE(collect.prepare(one.c.describe(), context, why));
    EXPECT_EQ(why, "to be compiled");
  }
  EXPECT_GT(host.texts(), 12u);
  ASSERT_NO_FATAL_FAILURE(host.compile());
  const std::vector<KernelRow> rows{row_of(host.compiled())};
  for (const Checked& one : all) test::expect_rows_agree(rows, one.c, one.tolerance);
}

std::string text_of(const Pointwise& op, const std::vector<Shape>& inputs, const Shape& y) {
  OpDesc desc{.op = op, .inputs = {}, .outputs = {{kF32, y}}};
  for (const Shape& input : inputs) desc.inputs.push_back({kF32, input});
  std::string why;
  const auto plan = plan_chain(desc, why);
  EXPECT_TRUE(plan) << why;
  return plan ? chain_text(plan->chain) : why;
}

TEST(CompiledChains, SizesAreNoPartOfThem) {
  const Pointwise op = example();
  EXPECT_EQ(text_of(op, {{8, 16}, {16}, {8, 1}}, {8, 16}), text_of(op, {{9, 48}, {48}, {9, 1}}, {9, 48}));
  EXPECT_EQ(text_of(op, {{8, 16}, {8, 16}, {1}}, {8, 16}), text_of(op, {{7}, {7}, {1}}, {7}))
      << "where all lie alike, axes are none either";
  EXPECT_NE(text_of(op, {{8, 16}, {16}, {8, 1}}, {8, 16}), text_of(op, {{8, 16}, {8, 1}, {16}}, {8, 16}));
}

TEST(CompiledChains, WhatCannotBeCompiledIsRefusedWithTheReason) {
  const ChainCompiler broken = [](const std::string&, std::string& why) {
    why = "NVRTC_ERROR_COMPILATION: no";
    return std::nullopt;
  };
  const Case c{.op = example(), .inputs = {random_tensor({4}, 1), random_tensor({4}, 2), random_tensor({4}, 3)}, .outputs = {{kF32, {4}}}};
  std::string why;
  EXPECT_FALSE(prepare_compiled_chain(broken, c.describe(), why));
  EXPECT_THAT(why, HasSubstr("NVRTC_ERROR_COMPILATION"));
}

}  // namespace
}  // namespace serin::kernels::cuda
