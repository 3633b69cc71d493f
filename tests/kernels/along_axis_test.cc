// Kernels that work along an axis, and those of other types than f32, against the reference, on every instruction set that this machine has.

#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/every_isa.h"

namespace serin::kernels::test {
namespace {

constexpr DType kI64 = DType::kInt64, kBool = DType::kBool;

class AlongAxis : public EveryIsa {};
SERIN_ON_EVERY_ISA(AlongAxis);

Generic generic(std::string name, std::vector<std::pair<std::string, int64_t>> numbers) {
  Generic op{.name = std::move(name), .attributes = {}};
  for (const auto& [key, value] : numbers) op.attributes.set(key, value);
  return op;
}

/// 0, 1 and 2 in turn.
Tensor many_equal(const Shape& shape) {
  Tensor few(kF32, shape);
  for (int64_t i = 0; i < shape.elements(); ++i) few.view().as<float>()[i] = static_cast<float>(i * 7 % 3);
  return few;
}

const Shape kShapes[] = {{5}, {4, 70}, {3, 33, 130}, {2, 200, 5}, {130, 3}, {2, 1, 9}};

TEST_P(AlongAxis, ArgMaxTakesTheFirstOrTheLastOfEquals) {
  for (const Shape& shape : kShapes) {
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      Shape y = shape;
      y[axis] = 1;
      for (const bool min : {false, true}) {
        for (const bool last : {false, true}) {
          const ArgMax op{.axis = static_cast<int64_t>(axis), .min = min, .last = last};
          expect_match({.op = op, .inputs = {random_tensor(shape, 1)}, .outputs = {{kI64, y}}}, {0, 0});
          expect_match({.op = op, .inputs = {special_values(shape)}, .outputs = {{kI64, y}}}, {0, 0});
          expect_match({.op = op, .inputs = {many_equal(shape)}, .outputs = {{kI64, y}}}, {0, 0});
        }
      }
    }
  }
}

TEST_P(AlongAxis, CumSumOfEachType) {
  for (const Shape& shape : kShapes) {
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      for (const bool exclusive : {false, true}) {
        for (const bool reverse : {false, true}) {
          const CumSum op{.axis = static_cast<int64_t>(axis), .exclusive = exclusive, .reverse = reverse};
          expect_match({.op = op, .inputs = {random_tensor(shape, 1)}, .outputs = {{kF32, shape}}}, {1e-6, 1e-6});
          for (const DType dtype : {DType::kInt32, kI64, DType::kFloat64})
            expect_match({.op = op, .inputs = {random_integers(dtype, shape, 2)}, .outputs = {{dtype, shape}}}, {0, 0});
        }
      }
    }
  }
}

TEST_P(AlongAxis, CumSumWraps) {
  const Tensor x({3}, std::vector<int32_t>{std::numeric_limits<int32_t>::max(), 1, 1});
  expect_match({.op = CumSum{}, .inputs = {x}, .outputs = {{DType::kInt32, {3}}}}, {0, 0});
}

TEST_P(AlongAxis, TopKOfEveryK) {
  for (const Shape& shape : {Shape{3, 100}, Shape{100, 3}, Shape{2, 1000}, Shape{1, 1}}) {
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      for (const int64_t k : {0, 1, 2, 5, 40, 99, 100, 1000}) {
        if (k > shape[axis]) continue;
        Shape y = shape;
        y[axis] = k;
        for (const int64_t largest : {0, 1}) {
          const Generic op = generic("TopK", {{"axis", static_cast<int64_t>(axis)}, {"largest", largest}});
          const Tensor count({1}, std::vector<int64_t>{k});
          expect_match({.op = op, .inputs = {random_tensor(shape, 1), count}, .outputs = {{kF32, y}, {kI64, y}}}, {0, 0});
          expect_match({.op = op, .inputs = {special_values(shape), count}, .outputs = {{kF32, y}, {kI64, y}}}, {0, 0});
          Tensor few(kF32, shape);
          for (int64_t i = 0; i < shape.elements(); ++i) few.view().as<float>()[i] = static_cast<float>(i * 5 % 7);
          expect_match({.op = op, .inputs = {few, count}, .outputs = {{kF32, y}, {kI64, y}}}, {0, 0});
        }
      }
    }
  }
}

TEST_P(AlongAxis, GatherElementsOnEitherAxis) {
  for (const int64_t axis : {0, 1}) {
    const Shape x{20, 30}, y = axis == 0 ? Shape{50, 17} : Shape{13, 40};
    for (const DType indices : {DType::kInt32, kI64}) {
      const Tensor at = random_integers(indices, y, 1, -static_cast<int>(x[static_cast<size_t>(axis)]),
                                        static_cast<int>(x[static_cast<size_t>(axis)]) - 1);
      for (const DType dtype : {kF32, kI64}) {
        expect_match(
            {.op = generic("GatherElements", {{"axis", axis}}), .inputs = {random_integers(dtype, x, 2), at}, .outputs = {{dtype, y}}},
            {0, 0});
      }
    }
  }
}

TEST_P(AlongAxis, HardmaxTakesTheFirstOfEquals) {
  for (const Shape& shape : kShapes) {
    const Generic op = generic("Hardmax", {{"axis", -1}});
    expect_match({.op = op, .inputs = {random_tensor(shape, 1)}, .outputs = {{kF32, shape}}}, {0, 0});
    expect_match({.op = op, .inputs = {special_values(shape)}, .outputs = {{kF32, shape}}}, {0, 0});
    expect_match({.op = op, .inputs = {many_equal(shape)}, .outputs = {{kF32, shape}}}, {0, 0});
  }
}

TEST_P(AlongAxis, GatherElementsNamesAnIndexOutOfRange) {
  const Case c{.op = generic("GatherElements", {{"axis", 0}}),
               .inputs = {random_tensor({3, 2}, 1), Tensor({2, 2}, std::vector<int64_t>{0, 1, -4, 2})},
               .outputs = {{kF32, {2, 2}}}};
  PackedWeights weights;
  PrepareContext context{&weights};
  const Prepared prepared = backend(GetParam()).prepare(c.describe(), context);
  ASSERT_NE(prepared.name, "ref");
  Tensor y(kF32, {2, 2});
  std::vector<TensorView> in = {c.inputs[0].view(), c.inputs[1].view()}, out = {y.view()};
  Stream stream;
  EXPECT_EQ(prepared.kernel->run(stream, in, out), "index -4 is out of range for axis 0 of size 3");
}

TEST_P(AlongAxis, ReduceOverAxesThatAreApart) {
  for (int fn = 0; fn <= static_cast<int>(ReduceFn::kSumSquare); ++fn) {
    const auto op = static_cast<ReduceFn>(fn);
    const Tolerance tolerance{1e-5, 1e-6};
    expect_match({.op = Reduce{op, {0, 2, 3}}, .inputs = {random_tensor({3, 5, 4, 9}, 1)}, .outputs = {{kF32, {5}}}}, tolerance);
    expect_match({.op = Reduce{op, {2, 0}}, .inputs = {random_tensor({3, 5, 4, 2}, 1, 0.5f)}, .outputs = {{kF32, {1, 5, 1, 2}}}},
                 tolerance);
    expect_match({.op = Reduce{op, {0, 2, 4}}, .inputs = {random_tensor({2, 3, 3, 2, 2}, 1)}, .outputs = {{kF32, {3, 2}}}}, tolerance);
    expect_match({.op = Reduce{op, {0, 2}}, .inputs = {random_tensor({3, 70, 2}, 1)}, .outputs = {{kF32, {70}}}, .bound = 4}, tolerance);
    expect_match({.op = Reduce{op, {0}}, .inputs = {random_tensor({30, 200}, 1)}, .outputs = {{kF32, {200}}}}, tolerance);
  }
}

TEST_P(AlongAxis, SoftmaxOverAnyAxis) {
  for (const Shape& shape : {Shape{5, 37}, Shape{2, 7, 33}, Shape{3, 200, 70}, Shape{1, 4, 16, 16}}) {
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.rank()); ++axis) {
      for (const bool log : {false, true}) {
        expect_match({.op = Softmax{axis, log}, .inputs = {random_tensor(shape, 1, 4.f)}, .outputs = {{kF32, shape}}},
                     {1e-5, log ? 1e-6 : 0});
        expect_match({.op = Softmax{axis, log}, .inputs = {special_values(shape)}, .outputs = {{kF32, shape}}}, {1e-5, log ? 1e-6 : 0});
      }
    }
  }
}

TEST_P(AlongAxis, LogSumExpOverTheLastAxes) {
  Generic op = generic("ReduceLogSumExp", {});
  for (const std::vector<int64_t>& axes : {std::vector<int64_t>{-1}, {1, 2}, {2, 1, 0}}) {
    op.attributes.set("axes", axes);
    const Shape y = axes.size() == 1 ? Shape{4, 9} : axes.size() == 2 ? Shape{4} : Shape{};
    expect_match({.op = op, .inputs = {random_tensor({4, 9, 77}, 1, 5.f)}, .outputs = {{kF32, y}}}, {1e-5, 1e-6});
    expect_match({.op = op, .inputs = {special_values({4, 9, 77})}, .outputs = {{kF32, y}}}, {1e-5, 1e-6});
  }
  const float infinity = std::numeric_limits<float>::infinity();
  op.attributes.set("axes", std::vector<int64_t>{-1});
  const Tensor infinite({4, 3},
                        std::vector<float>{infinity, 1, -100, -infinity, -infinity, -infinity, infinity, infinity, 2, -100, 0, -1e4f});
  expect_match({.op = op, .inputs = {infinite}, .outputs = {{kF32, {4}}}}, {1e-5, 1e-6});
}

TEST_P(AlongAxis, CastBetweenWhatModelsConvert) {
  const DType types[] = {kBool, DType::kInt8, DType::kUInt8, DType::kInt32, kI64, kF32, DType::kFloat64};
  for (const DType from : types) {
    for (const DType to : types) {
      const Case c{.op = Cast{}, .inputs = {random_integers(from, {301}, 1)}, .outputs = {{to, {301}}}};
      expect_rows_match_reference(backend(GetParam()), c, {0, 0}, true);
    }
  }
  for (const DType to : {kBool, DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16, DType::kInt32, kI64, DType::kFloat64}) {
    expect_match({.op = Cast{}, .inputs = {special_values({700})}, .outputs = {{to, {700}}}}, {0, 0});
    expect_match({.op = Cast{}, .inputs = {random_tensor({700}, 1, 200.f)}, .outputs = {{to, {700}}}}, {0, 0});
  }
}

TEST_P(AlongAxis, SelectOfEightBytes) {
  for (const Shape& a : {Shape{6, 50}, Shape{50}, Shape{6, 1}, Shape{}}) {
    expect_match({.op = Select{},
                  .inputs = {random_integers(kBool, {6, 50}, 1), random_integers(kI64, a, 2), random_integers(kI64, {6, 50}, 3)},
                  .outputs = {{kI64, {6, 50}}}},
                 {0, 0});
    expect_match(
        {.op = Select{},
         .inputs = {random_integers(kBool, a, 1), random_integers(DType::kFloat64, {6, 50}, 2), random_integers(DType::kFloat64, {50}, 3)},
         .outputs = {{DType::kFloat64, {6, 50}}}},
        {0, 0});
  }
}

TEST_P(AlongAxis, SelectOfSmallElements) {
  for (const DType dtype : {kBool, DType::kInt8, DType::kUInt8, DType::kInt16, DType::kFloat16, DType::kBFloat16}) {
    for (const Shape& small : {Shape{6, 150}, Shape{150}, Shape{6, 1}, Shape{}}) {
      const Tensor condition = random_integers(kBool, {6, 150}, 1), a = random_integers(dtype, {6, 150}, 2, 0, 100);
      const Tensor b = random_integers(dtype, small, 3, 0, 100);
      expect_match({.op = Select{}, .inputs = {condition, a, b}, .outputs = {{dtype, {6, 150}}}}, {0, 0});
      expect_match({.op = Select{}, .inputs = {condition, b, a}, .outputs = {{dtype, {6, 150}}}}, {0, 0});
      expect_match({.op = Select{}, .inputs = {random_integers(kBool, small, 4), a, a}, .outputs = {{dtype, {6, 150}}}}, {0, 0});
    }
  }
}

TEST_P(AlongAxis, QuestionsAboutFloats) {
  expect_match({.op = Unary{UnaryFn::kIsNaN}, .inputs = {special_values({999})}, .outputs = {{kBool, {999}}}});
  for (const float sign : {-1.f, 0.f, 1.f})
    expect_match({.op = Unary{UnaryFn::kIsInf, sign}, .inputs = {special_values({999})}, .outputs = {{kBool, {999}}}});
  expect_match({.op = Unary{UnaryFn::kNot}, .inputs = {random_integers(kBool, {999}, 1)}, .outputs = {{kBool, {999}}}});
}

TEST_P(AlongAxis, HalvesAreComputedAsFloats) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const bool from_ref = dtype == DType::kFloat16 && GetParam() == Isa::kScalar;  // no instruction for it
    const double half_ulp = dtype == DType::kFloat16 ? 1e-3 : 8e-3;
    for (const int64_t n : {0, 1, 17, 1024, 3000}) {
      const Case c{.op = Unary{UnaryFn::kTanh}, .inputs = {random_integers(dtype, {n}, 1)}, .outputs = {{dtype, {n}}}};
      expect_rows_match_reference(backend(GetParam()), c, {half_ulp, 0}, from_ref);
    }
    for (const Shape& b : {Shape{3, 2000}, Shape{2000}, Shape{3, 1}, Shape{}}) {
      for (const BinaryFn fn : {BinaryFn::kDiv, BinaryFn::kMax, BinaryFn::kLess}) {
        const Case c{.op = Binary{fn},
                     .inputs = {random_integers(dtype, {3, 2000}, 1), random_integers(dtype, b, 2)},
                     .outputs = {{is_compare(fn) ? kBool : dtype, {3, 2000}}}};
        expect_rows_match_reference(backend(GetParam()), c, {half_ulp, 0}, from_ref);
      }
    }
  }
}

TEST_P(AlongAxis, BinaryOnDoubles) {
  for (const BinaryFn fn : {BinaryFn::kAdd, BinaryFn::kDiv, BinaryFn::kMin, BinaryFn::kLess}) {
    expect_match({.op = Binary{fn},
                  .inputs = {random_integers(DType::kFloat64, {7, 30}, 1), random_integers(DType::kFloat64, {30}, 2)},
                  .outputs = {{is_compare(fn) ? kBool : DType::kFloat64, {7, 30}}}},
                 {0, 0});
  }
}

TEST_P(AlongAxis, HugeAnglesAreReducedExactly) {
  for (const UnaryFn fn : {UnaryFn::kSin, UnaryFn::kCos, UnaryFn::kTan}) {
    for (const float scale : {1e2f, 2e4f, 1e5f, 1e9f, 1e30f})
      expect_match({.op = Unary{fn}, .inputs = {random_tensor({3000}, 1, scale)}, .outputs = {{kF32, {3000}}}}, {1e-5, 1e-7});
  }
}

TEST_P(AlongAxis, PowersOverTheWholeRange) {
  Tensor base = random_tensor({4000}, 1);
  for (float& x : base.view().span<float>()) x = std::exp(20.f * x);
  for (const float scale : {0.5f, 3.f, 30.f})
    expect_match({.op = Binary{BinaryFn::kPow}, .inputs = {base, random_tensor({4000}, 2, scale)}, .outputs = {{kF32, {4000}}}}, {1e-6, 0});
  for (const float power : {-1.f, -0.5f, 0.f, 0.5f, 2.2f, 3.f}) {
    const Tensor exponent({1}, std::vector<float>{power});
    expect_match({.op = Binary{BinaryFn::kPow}, .inputs = {random_tensor({500}, 3, 2.f), exponent}, .outputs = {{kF32, {500}}}}, {1e-6, 0});
  }
}

}  // namespace
}  // namespace serin::kernels::test
