// batch_rows_test.cc: what is proven batchable answers each row as it answers that row alone, whatever lies beside it.

#include <gtest/gtest.h>

#include <cstring>

#include "tests/runtime/engine/support.h"

namespace serin::engine::test {
namespace {

struct Case {
  const char* name;
  const char* text;
};

const Case kCases[] = {
    {"Attention", "q: f32[n,2,6,8]\nk: f32[n,2,5,8]\nv: f32[n,2,5,8]\nm: f32[n,1,6,5]\ny = Attention(q, k, v, m)\nreturn y"},
    {"AttentionOfRankThree", "q: f32[n,6,16]\ny = Attention(q, q, q, mask[6,6], q_num_heads=2, kv_num_heads=2, is_causal=1)\nreturn y"},
    {"AttentionWithPast", "q: f32[n,2,3,8]\nc: f32[n,2,4,8]\ny, keys, values = Attention(q, q, q, _, c, c)\nreturn y, keys, values"},
    {"Einsum",
     "x: f32[n,4,8]\nz: f32[n,5,8]\ny = Einsum(x, z, equation=\"bij,bkj->bik\")\nu = Einsum(y, w[5,3], equation=\"...ij,jk\")\nreturn u"},
    {"GridSample", "x: f32[n,3,8,8]\ng: f32[n,4,4,2]\ny = GridSample(x, g)\nreturn y"},
    {"QLinearConv",
     "x: f32[n,4,6,6]\nq = QuantizeLinear(x, s:f32[]{0.02}, z:u8[]{128})\n"
     "r = QLinearConv(q, a:f32[]{0.02}, b:u8[]{128}, w:i8[4,4,1,1]{1,-2,3,-4,5,-6,7,-8,9,-9,8,-7,6,-5,4,-3}, c:f32[]{0.05}, d:i8[]{0}, "
     "e:f32[]{0.05}, f:u8[]{120})\ny = DequantizeLinear(r, g:f32[]{0.05}, h:u8[]{120})\nreturn y"},
    {"QuantizedMatMul",
     "x: f32[n,2]\nq = QuantizeLinear(x, s:f32[]{0.02}, z:u8[]{128})\n"
     "y = QuantizedMatMul(q, a:f32[]{0.02}, b:u8[]{128}, w:i8[2,2]{10,-20,30,40}, c:f32[]{0.5}, d:i8[]{0}, _)\nreturn y"},
    {"QuantizedBinary",
     "x: f32[n,4]\nq = QuantizeLinear(x, s:f32[]{0.02}, z:u8[]{128})\n"
     "r = QuantizedBinary(q, a:f32[]{0.02}, b:u8[]{128}, q, c:f32[]{0.02}, d:u8[]{128}, e:f32[]{0.05}, f:u8[]{120}, function=\"Mul\")\n"
     "y = DequantizeLinear(r, g:f32[]{0.05}, h:u8[]{120})\nreturn y"},
    {"RoundedForFewBits",
     "x: f32[n,32]\ny = MatMulNBits(x, w:u8[2,1,16]{11,48,85,122,159,196,233,14,51,88,125,162,199,236,17,"
     "54,91,128,165,202,239,20,57,94,131,168,205,242,23,60,97,134}, s:f32[2]{0.5,0.25}, K=32, N=2, bits=4, "
     "block_size=32, accuracy_level=4)\nreturn y"},
    {"GatherElements", "x: f32[n,4,6]\nw: f32[n,4,2]\nc = Cast(w, to=i64)\ny = GatherElements(x, c, axis=2)\nreturn y"},
    {"Trilu", "x: f32[n,4,6]\ny = Trilu(x)\nreturn y"},
};

class BatchRows : public testing::TestWithParam<Case> {};

/// Row `row` of a tensor, or of a batch of `rows`.
Tensor row_of(const Tensor& tensor, int64_t row) {
  Shape shape = tensor.view().shape;
  const size_t bytes = tensor.view().bytes() / static_cast<size_t>(shape[0]);
  shape[0] = 1;
  Tensor one(tensor.view().dtype, shape);
  std::memcpy(one.view().data, tensor.view().as<std::byte>() + static_cast<size_t>(row) * bytes, bytes);
  return one;
}

TEST_P(BatchRows, AreThoseOfTheRowsAlone) {
  constexpr int64_t kRows = 5;
  for (const kernels::Backend* backend : {&reference(), &best()}) {
    const auto model = model_of(GetParam().text, *backend);
    ASSERT_TRUE(model->batchable().yes) << model->batchable().why_not;
    std::vector<Tensor> together;
    for (const TensorInfo& info : model->inputs()) {
      Shape shape = info.shape;
      shape[0] = kRows;
      together.push_back(random_tensor(shape, static_cast<uint32_t>(together.size() + 1)));
    }
    const auto batch = model->executor({{"n", kRows}});
    const auto single = model->executor({{"n", 1}});
    ASSERT_TRUE(batch && single);
    const std::vector<Tensor> outputs = run(**batch, together);
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<Tensor> alone;
      for (const Tensor& input : together) alone.push_back(row_of(input, row));
      const std::vector<Tensor> expected = run(**single, alone);
      for (size_t i = 0; i < outputs.size(); ++i) expect_near(row_of(outputs[i], row).view(), expected[i].view(), GetParam().name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, BatchRows, testing::ValuesIn(kCases), [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace serin::engine::test
