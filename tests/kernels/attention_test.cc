// Attention against the reference kernel, on every instruction set: heads of any size, shared heads, masks, causality, more keys than one block
// of the softmax holds, views into a larger tensor.

#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/harness.h"

namespace serin::kernels::test {
namespace {

constexpr Tolerance kTolerance{1e-5, 2e-6}, kRoundedTolerance{0, 5e-3};  // in bf16 the weights of the values are rounded, too

struct Heads {
  int64_t batch, q_heads, kv_heads, q_len, kv_len, head, v_head;
};

Case attention(const Heads& h, bool flat = false) {
  const auto operand = [&](int64_t heads, int64_t length, int64_t width) {
    return flat ? Shape{h.batch, length, heads * width} : Shape{h.batch, heads, length, width};
  };
  Generic op{.name = "Attention", .attributes = {}};
  op.attributes.set("q_num_heads", h.q_heads);
  op.attributes.set("kv_num_heads", h.kv_heads);
  return {.op = op,
          .inputs = {random_tensor(operand(h.q_heads, h.q_len, h.head), 1), random_tensor(operand(h.kv_heads, h.kv_len, h.head), 2),
                     random_tensor(operand(h.kv_heads, h.kv_len, h.v_head), 3)},
          .outputs = {{kF32, operand(h.q_heads, h.q_len, h.v_head)}}};
}

class Attends : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    if (GetParam().isa > best_isa()) GTEST_SKIP() << "this machine has no " << isa_name(GetParam().isa);
    if (GetParam().bf16 && !multiplies_bf16()) GTEST_SKIP() << "this machine does not multiply bf16";
  }
  static void expect_match(Case c) {
    if (!GetParam().bf16) {
      expect_rows_match_reference(backend(GetParam().isa), c, kTolerance);
      return;
    }
    for (Tensor& input : c.inputs) {
      if (input.dtype() == kF32) input = rounded_to_bf16(input);
    }
    const std::vector<std::string> rows = expect_rows_match_reference(bf16_backend(), c, kRoundedTolerance);
    EXPECT_EQ(rows.front(), "attention_bf16_avx512");
  }
};
INSTANTIATE_TEST_SUITE_P(On, Attends,
                         testing::Values(Target{Isa::kScalar}, Target{Isa::kAvx2}, Target{Isa::kAvx512}, Target{Isa::kAvx512, true}),
                         [](const auto& test) { return std::string(isa_name(test.param.isa)) + (test.param.bf16 ? "_bf16" : ""); });

TEST_P(Attends, ToHeadsOfAnySize) {
  expect_match(attention({1, 12, 12, 128, 128, 64, 64}, true));
  expect_match(attention({2, 4, 2, 33, 70, 40, 24}));
  expect_match(attention({1, 3, 1, 1, 50, 8, 5}));
  expect_match(attention({1, 1, 1, 7, 1, 1, 1}));
}

TEST_P(Attends, ToMoreKeysThanABlockHolds) {
  Case c = attention({1, 2, 2, 35, 2000, 16, 20});
  expect_match(c);
  set(c, "is_causal", int64_t{1});
  expect_match(c);
}

TEST_P(Attends, AndLetsNanAndInfinityThrough) {
  for (const float special : {std::nanf(""), HUGE_VALF}) {
    for (const size_t input : {0u, 1u, 2u}) {
      Case c = attention({1, 2, 2, 9, 21, 17, 19});
      c.inputs[input].view().as<float>()[20] = special;
      expect_match(c);
    }
  }
}

TEST_P(Attends, BehindMasks) {
  const Heads h{2, 4, 2, 33, 70, 16, 16};
  for (const Shape& shape : {Shape{33, 70}, Shape{2, 1, 1, 70}, Shape{2, 4, 33, 70}, Shape{4, 1, 65}}) {
    Case added = attention(h);
    added.inputs.push_back(random_tensor(shape, 4, 3.f));
    expect_match(added);
    Case chosen = attention(h);
    chosen.inputs.push_back(random_integers(DType::kBool, shape, 5));
    set(chosen, "masked_to_zero", int64_t{1});
    set(chosen, "is_causal", int64_t{1});
    expect_match(chosen);
  }
}

TEST_P(Attends, WithACapAndAScale) {
  Case c = attention({1, 2, 2, 9, 21, 16, 16});
  set(c, "softcap", 2.0);
  set(c, "scale", 1.5);
  set(c, "heads_inside", int64_t{1});
  c.outputs[0].shape = {1, 9, 2, 16};
  expect_match(c);
}

TEST_P(Attends, ToAPast) {
  Case c = attention({2, 4, 2, 3, 3, 16, 8});
  c.inputs.push_back(Tensor(DType::kUndefined, {}));
  c.inputs.push_back(random_tensor({2, 2, 11, 16}, 6));
  c.inputs.push_back(random_tensor({2, 2, 11, 8}, 7));
  c.outputs.push_back({kF32, {2, 2, 14, 16}});
  c.outputs.push_back({kF32, {2, 2, 14, 8}});
  set(c, "is_causal", int64_t{1});
  expect_match(c);
}

TEST_P(Attends, ToPartsOfOneTensor) {  // [batch, length, 3, heads, head], as one product makes q, k and v
  constexpr int64_t kBatch = 2, kLength = 19, kHeads = 3, kHead = 16, kRow = 3 * kHeads * kHead;
  Case c = attention({kBatch, kHeads, kHeads, kLength, kLength, kHead, kHead});
  const Tensor packed = random_tensor({kBatch, kLength, 3, kHeads, kHead}, 8);
  c.inputs = {packed, packed, packed};
  const char* const views[] = {"q_view", "k_view", "v_view"};
  for (int64_t i = 0; i < 3; ++i) {
    set(c, views[i], std::vector<int64_t>{kBatch, kHeads, kLength, kHead, i * kHeads * kHead, kLength * kRow, kHead, kRow});
  }
  expect_match(c);
}

TEST(Attention, RefusesViewsThatLeaveTheirTensor) {
  Case c = attention({1, 2, 2, 4, 4, 8, 8});
  set(c, "v_view", std::vector<int64_t>{1, 2, 4, 8, 1, 64, 32, 8});
  EXPECT_NE(reference_fault(c).find("leaves its tensor"), std::string::npos) << reference_fault(c);
}

TEST(Attention, RefusesOperandsThatDoNotFit) {
  Case heads = attention({1, 3, 2, 4, 4, 8, 8});
  EXPECT_NE(reference_fault(heads).find("multiple"), std::string::npos);
  Case mask = attention({1, 2, 2, 4, 4, 8, 8});
  mask.inputs.push_back(random_tensor({3, 4}, 1));
  EXPECT_NE(reference_fault(mask).find("mask"), std::string::npos);
}

}  // namespace
}  // namespace serin::kernels::test
