// chain_codes.cu: what NVRTC makes of the texts of chains, which needs no device. A line for each: name, architecture, bytes of code; and for each of its two
// kernels: registers, bytes of stack, bytes spilled. `chain_codes broken`: what is said of a text that is no program. `chain_codes load`: what is said where
// nothing can be loaded.

#include <stdio.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/chain_kernels.h"
#include "kernels/cuda/nvidia/run_time.h"

namespace serin::kernels::cuda {

namespace {

struct Example {
  const char* name;
  Pointwise op;
  std::vector<TensorDesc> inputs;
  TensorDesc y;
};

constexpr DType kF16 = DType::kFloat16, kF32 = DType::kFloat32, kBF16 = DType::kBFloat16;

std::vector<Example> examples() {
  const Shape image{8, 56, 56, 96};
  const auto unary = [](UnaryFn fn, int32_t x) { return Pointwise::Step{Unary{fn}, {x}}; };
  const auto binary = [](BinaryFn fn, int32_t a, int32_t b) { return Pointwise::Step{Binary{fn}, {a, b}}; };
  std::vector<Pointwise::Step> many{binary(BinaryFn::kAdd, 0, 1)};
  for (int32_t i = 1; i < static_cast<int32_t>(Pointwise::kMaxSteps); ++i)
    many.push_back(binary(i % 2 ? BinaryFn::kMul : BinaryFn::kSub, i + 1, i % 3));
  return {
      {"scale, shift, silu, residual",
       {{binary(BinaryFn::kMul, 0, 1), binary(BinaryFn::kAdd, 4, 2), unary(UnaryFn::kSilu, 5), binary(BinaryFn::kAdd, 6, 3)}},
       {{kF16, image}, {kF16, {96}}, {kF16, {96}}, {kF16, image}},
       {kF16, image}},
      {"squeeze and excitation",
       {{unary(UnaryFn::kHardSigmoid, 1), binary(BinaryFn::kMul, 0, 2)}},
       {{kF16, image}, {kF16, {8, 1, 1, 96}}},
       {kF16, image}},
      {"gelu in f32", {{unary(UnaryFn::kGelu, 0), binary(BinaryFn::kMul, 1, 2)}}, {{kF32, {4096}}, {kF32, {4096}}}, {kF32, {4096}}},
      {"a condition",
       {{binary(BinaryFn::kLess, 0, 1), Pointwise::Step{Select{}, {2, 0, 1}}}},
       {{kBF16, image}, {kF32, {}}},
       {kBF16, image}},
      {"every step there may be", {many}, {{kF16, image}, {kF16, {96}}}, {kF16, image}},
  };
}

/// Numbers that stand before a word in the assembler's lines: "Used 37 registers".
std::vector<long> numbers_before(const std::string& log, const std::string& word) {
  std::vector<long> numbers;
  for (size_t at = log.find(word); at != std::string::npos; at = log.find(word, at + 1)) {
    const size_t begin = log.find_last_not_of("0123456789", at - 1) + 1;
    numbers.push_back(std::strtol(log.c_str() + begin, nullptr, 10));
  }
  return numbers;
}

int print(const Example& example, const char* architecture) {
  OpDesc desc{.op = example.op, .inputs = example.inputs, .outputs = {example.y}};
  std::string why, log;
  const auto plan = plan_chain(desc, why);
  const auto code = plan ? compile_at_run_time(chain_text(plan->chain), architecture, why, &log) : std::nullopt;
  if (!code) {
    fprintf(stderr, "%s: %s\n", example.name, why.c_str());
    return 1;
  }
  printf("%s\t%s\t%zu", example.name, architecture, code->size());
  for (const char* const word : {" registers", " bytes stack frame", " bytes spill stores"}) {
    for (const long number : numbers_before(log, word)) printf("\t%ld", number);
  }
  printf("\n");
  return 0;
}

}  // namespace

}  // namespace serin::kernels::cuda

int main(int argc, char** argv) {
  using namespace serin::kernels::cuda;
  open_run_time_compiler();
  if (argc > 1 && std::strcmp(argv[1], "broken") == 0) {
    std::string why;
    const bool compiled = compile_at_run_time("#include \"kernels/cuda/chain.h\"\nint x = no_such_thing;\n", "sm_90", why).has_value();
    printf("%s\n", why.c_str());
    return compiled ? 1 : 0;
  }
  if (argc > 1 && std::strcmp(argv[1], "load") == 0) {
    RunTimeKernels kernels("sm_90", "", "a test");
    for (int i = 0; i < 2; ++i) {
      std::string why;
      if (!kernels.load("extern \"C\" __global__ void nothing() {}", {"nothing"}, why).empty()) return 1;
      printf("%s\n", why.c_str());
    }
    return 0;
  }
  int failed = 0;
  for (const Example& example : examples()) failed += print(example, "sm_90");
  for (const char* const architecture : {"sm_75", "sm_80", "sm_100"}) failed += print(examples()[0], architecture);
  return failed;
}
