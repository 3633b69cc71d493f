// q, k and v as one product: only on a device, with the answers of the CPU, one weight for all sizes, and no copy of its parts.

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/engine/describe.h"
#include "runtime/engine/plan.h"
#include "tests/gpu/device_under_test.h"
#include "tests/runtime/engine/support.h"

namespace serin::engine {
namespace {

using test::random_tensor;
using test::Tensor;
using testing::ElementsAre;

// Whisper's layer: queries are multiplied by a number, keys have no bias.
constexpr std::string_view kLayer = R"(
  x: f32[batch,seq,64]
  q = FusedMatMul(x, wq[64,32], bq[32])
  k = MatMul(x, wk[64,16])
  v = FusedMatMul(x, wv[64,16], bv[16])
  scaled = Mul(q, 0.35)
  qh = Reshape(scaled, i64{0,0,4,8})
  kh = Reshape(k, i64{0,0,2,8})
  vh = Reshape(v, i64{0,0,2,8})
  qt = Transpose(qh, perm=[0,2,1,3])
  kt = Transpose(kh, perm=[0,2,1,3])
  vt = Transpose(vh, perm=[0,2,1,3])
  a = Attention(qt, kt, vt, heads_inside=1, scale=1.0)
  r = Reshape(a, i64{0,0,32})
  y = FusedMatMul(r, wy[32,64], by[64])
  return y
)";

const kernels::Backend& the_device() {
  static const auto backend = serin::test::open_device();
  return *backend;
}

/// What a plan computes; copies between host and device, and casts to 16 bits and back, left out.
std::vector<std::string> computed(const Plan& plan) {
  std::vector<std::string> names;
  for (const Step& step : plan.program.steps) {
    const std::string kind(kernels::kOpNames[step.kernel.index()]);
    const auto* const generic = std::get_if<kernels::Generic>(&step.kernel);
    if (kind == "Transfer" || kind == "Cast" || (kind == "StridedCopy" && step.op == graph::Op::kIdentity)) continue;
    names.push_back(generic ? generic->name : kind);
  }
  return names;
}

std::shared_ptr<Model> on_device(Precision precision, bool apart = false) {
  LoadOptions options{.device = &the_device(), .precision = precision};
  if (apart) options.disabled_passes.emplace("fuse_projections");
  return test::model_of(kLayer, test::best(), options);
}

TEST(Projections, AreOneProductOnADeviceAndAnswerAsOnTheCpu) {
  const auto on_cpu = test::model_of(kLayer, test::best());
  for (const auto& [precision, error] :
       {std::pair(Precision::kFp32, 1e-4F), std::pair(Precision::kFp16, 1e-2F), std::pair(Precision::kBf16, 8e-2F)}) {
    const auto joined = on_device(precision);
    for (const auto& [batch, seq] : {std::pair(1, 1), std::pair(1, 7), std::pair(3, 12)}) {
      const graph::Bindings sizes{{"batch", batch}, {"seq", seq}};
      const std::vector<Tensor> inputs{random_tensor({batch, seq, 64}, 1)};
      auto expected = on_cpu->executor(sizes), actual = joined->executor(sizes);
      ASSERT_TRUE(expected && actual);
      EXPECT_THAT(computed((*actual)->plan()), ElementsAre("MatMul", "Attention", "MatMul")) << describe((*actual)->plan());
      EXPECT_THAT(computed((*expected)->plan()), ElementsAre("MatMul", "MatMul", "MatMul", "Binary", "Attention", "MatMul"))
          << describe((*expected)->plan());
      const auto wanted = test::run(**expected, inputs)[0].values<float>(), got = test::run(**actual, inputs)[0].values<float>();
      EXPECT_THAT(got, testing::Pointwise(testing::FloatNear(error * *std::ranges::max_element(wanted)), wanted));
    }
  }
}

TEST(Projections, ShareOneWeightBetweenAllSizesAndKeepNoOther) {
  if (!serin::test::emulated()) GTEST_SKIP() << "counts what the emulated device holds";
  const auto held = [](bool apart) {
    const auto model = on_device(Precision::kFp32, apart);
    auto small = model->executor({{"batch", 1}, {"seq", 5}}), large = model->executor({{"batch", 4}, {"seq", 9}});
    EXPECT_TRUE(small && large);
    return model->device_bytes().weights;
  };
  EXPECT_GE(held(false), sizeof(float) * 64 * (32 + 16 + 16));
  EXPECT_LE(held(false), held(true));
}

}  // namespace
}  // namespace serin::engine
