// What no plan holds: sizes from data, control flow, sequences, strings, empty tensors. The ONNX suite has each operator once; here is what it
// leaves out: bodies in bodies, shapes that change from turn to turn, what is planned how often, limits, bad values.

#include "runtime/engine/interpret/interpreter.h"

#include <gmock/gmock.h>

#include <thread>

#include "tests/runtime/engine/support.h"

namespace serin::engine {
namespace {

using test::model_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <class T>
Value tensor(const Shape& shape, const std::vector<T>& elements) {
  const FreshTensor fresh = fresh_tensor(dtype_of<T>(), shape);
  for (size_t i = 0; i < elements.size(); ++i) fresh.view.as<T>()[i] = elements[i];
  return Value::of(fresh.tensor);
}
Value floats(const std::vector<float>& elements) { return tensor<float>(Shape{static_cast<int64_t>(elements.size())}, elements); }
Value integers(const std::vector<int64_t>& elements) { return tensor<int64_t>(Shape{static_cast<int64_t>(elements.size())}, elements); }
Value number(int64_t x) { return tensor<int64_t>(Shape{}, {x}); }
Value flag(bool x) { return tensor<bool>(Shape{}, {x}); }
Value strings(const Shape& shape, std::vector<std::string> elements) {
  FreshTensor fresh = fresh_tensor(DType::kString, shape);
  fresh.tensor->strings = std::move(elements);
  return Value::of(fresh.tensor);
}

template <class T>
std::vector<T> elements(const Value& value) {
  const auto span = value.tensor->span<T>();
  return {span.begin(), span.end()};
}
std::string shape_of(const Value& value) { return value.tensor ? value.tensor->shape.str() : "none"; }

std::vector<Value> run(Model& model, const std::vector<Value>& inputs) {
  auto results = model.run(inputs);
  EXPECT_TRUE(results) << results.error().message;
  return results ? *results : std::vector<Value>();
}
std::vector<Value> run(std::string_view text, const std::vector<Value>& inputs) {
  const auto model = model_of(text, test::best());
  return model ? run(*model, inputs) : std::vector<Value>();
}
std::string failure(Model& model, const std::vector<Value>& inputs) {
  const auto results = model.run(inputs);
  return results ? "ran" : results.error().message;
}

/// Lines of the description that begin with `what`, blanks aside.
int count(const std::string& text, std::string_view what) {
  int found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// ---- sizes from data ----

TEST(Interpreter, AShapeThatIsAnInputDecidesSizes) {
  const auto model = model_of("x: f32[n]\ns: i64[r]\ny = Reshape(x, s)\nz = Neg(y)\nreturn z\n");
  EXPECT_FALSE(model->planned());
  EXPECT_EQ(shape_of(run(*model, {floats({1, 2, 3, 4, 5, 6}), integers({2, 3})}).at(0)), "[2,3]");
  EXPECT_EQ(shape_of(run(*model, {floats({1, 2, 3, 4, 5, 6}), integers({3, -1, 1})}).at(0)), "[3,2,1]");
  EXPECT_THAT(failure(*model, {floats({1, 2, 3}), integers({2, -1})}), HasSubstr("node 'y' (Reshape): cannot reshape [3] to [2,-1]"));
}

TEST(Interpreter, WhatDoesNotDependOnDataIsOneRegion) {
  const auto model = model_of(
      "x: f32[n,4]\na = MatMul(x, w[4,4])\nb = Relu(a)\nc = Neg(b)\np = NonZero(c)\nt = Transpose(p)\nu = Mul(t, i64{2})\nreturn u\n");
  EXPECT_FALSE(model->planned());
  run(*model, {tensor<float>(Shape{1, 4}, {1, 2, 3, 4})});
  const std::string text = model->describe_last_run();
  EXPECT_EQ(count(text, "planned"), 2) << text;
  EXPECT_EQ(count(text, "interpreted: node 'p' (NonZero): the data decides the size of its result"), 1) << text;
}

TEST(Interpreter, SizesComputedInFloatingPointNeedNoStageOfTheirOwn) {
  const auto model = model_of(R"(
    x: f32[n,3]
    k: f32[n,2]
    s = Shape(x)
    f = Cast(s, to=f32)
    h = Mul(f, f32[1]{2.0})
    i = Cast(h, to=i64)
    c = ConstantOfShape(i)
    one = ReduceSum(x)
    e = Expand(one, i)
    p = NonZero(k)
    t = Transpose(p)
    return e, c, t
  )");
  const auto results = run(*model, {tensor<float>(Shape{2, 3}, {0, 0, 0, 0, 0, 0}), tensor<float>(Shape{2, 2}, {0, 1, 0, 1})});
  EXPECT_EQ(shape_of(results.at(0)), "[4,6]");
  EXPECT_EQ(count(model->describe_last_run(), "planned"), 2) << model->describe_last_run();
}

TEST(Interpreter, SizesThatOnlyKernelsComputeAreNoReasonToInterpret) {
  const auto model = model_of(R"(
    x: f32[n,3]
    s = Shape(x)
    f = Cast(s, to=f32)
    h = Mul(f, f32[1]{2.0})
    i = Cast(h, to=i64)
    one = ReduceSum(x)
    e = Expand(one, i)
    return e
  )");
  EXPECT_TRUE(model->planned()) << model->why_interpreted();
  const auto results = run(*model, {tensor<float>(Shape{2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(shape_of(results.at(0)), "[4,6]");
  EXPECT_FLOAT_EQ(elements<float>(results.at(0))[23], 21);
}

TEST(Interpreter, RanksThatAreNotDeclared) {
  const auto model = model_of("x: f32[...]\ny = Neg(x)\nz = ReduceSum(y, keepdims=0)\nreturn y, z\n");
  EXPECT_EQ(shape_of(run(*model, {tensor<float>(Shape{2, 1, 2}, {1, 2, 3, 4})}).at(0)), "[2,1,2]");
  EXPECT_THAT(elements<float>(run(*model, {tensor<float>(Shape{}, {3})}).at(1)), ElementsAre(-3));
}

TEST(Interpreter, ASliceThatMovesMakesNoNewStages) {
  const auto model = model_of("x: f32[n]\ni: i64[1]\nj: i64[1]\ny = Slice(x, i, j)\nz = Neg(y)\nreturn z\n");
  for (int64_t i = 0; i < 40; ++i) {
    const auto results = run(*model, {floats(std::vector<float>(50, static_cast<float>(i))), integers({i}), integers({i + 2})});
    EXPECT_THAT(elements<float>(results.at(0)), ElementsAre(-i, -i));
  }
}

TEST(Interpreter, SeveralThreadsRunAtOnce) {
  const auto model = model_of("x: f32[n]\np = NonZero(x)\nt = Transpose(p)\nreturn t\n");
  const auto work = [&](size_t ones) {
    for (size_t i = 0; i < 50; ++i) {
      const auto results = model->run(std::vector{floats(std::vector<float>(ones + i % 3, 1.f))});
      ASSERT_TRUE(results);
      EXPECT_EQ(shape_of(results->at(0)), (Shape{static_cast<int64_t>(ones + i % 3), 1}).str());
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i <= 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

// ---- control flow ----

constexpr std::string_view kGrowing = R"(
    n: i64[]
    x: f32[1]
    y, all = Loop(n, _, x, carried=1)
      body:
        i: i64[]
        c: bool[]
        v: f32[k]
        w = Concat(v, v, axis=0)
        s = ReduceSum(w, keepdims=0)
        return c, w, s
    return y, all
)";

TEST(Loop, CarriedShapesMayChangeFromTurnToTurn) {
  const auto model = model_of(kGrowing);
  const auto results = run(*model, {number(4), floats({1})});
  EXPECT_EQ(shape_of(results.at(0)), "[16]");
  EXPECT_THAT(elements<float>(results.at(1)), ElementsAre(2, 4, 8, 16));
}

TEST(Loop, DimensionsThatNoTurnChangesStayKnown) {
  const auto graph = graph::parse(R"(rows: f32[n,3]
item: f32[k,3]
turns: i64[]
y, other = Loop(turns, _, rows, turns, item, carried=2)
  body:
    i: i64[]
    c: bool[]
    v: f32[n,3]
    w: i64[]
    x: f32[k,3]
    grown = Concat(v, x, axis=0)
    wider = Unsqueeze(w, axes=[0])
    return c, grown, wider
z = ReduceSum(y, axes=[1], keepdims=1)
return y, z, other
)");
  ASSERT_TRUE(graph) << graph.error().message;
  graph::Graph inferred = *graph;
  ASSERT_TRUE(graph::infer_shapes(inferred));
  const auto type = [&](size_t i) { return inferred.value(inferred.outputs()[i]).type; };
  ASSERT_TRUE(type(0).shape);
  EXPECT_EQ((*type(0).shape)[1], graph::Dim(3));
  EXPECT_TRUE((*type(0).shape)[0].symbol_name()->starts_with('?'));
  EXPECT_EQ((*type(1).shape)[0], (*type(0).shape)[0]);
  EXPECT_FALSE(type(2).shape) << "a value that changes its rank";
}

TEST(Loop, NoTurnsGiveWhatWentInAndNothingScanned) {
  const auto results = run(*model_of(kGrowing), {number(0), floats({7})});
  EXPECT_THAT(elements<float>(results.at(0)), ElementsAre(7));
  EXPECT_EQ(shape_of(results.at(1)), "[0]");
}

TEST(Loop, ABodyOfConstantShapesIsPlannedOnce) {
  const auto model = model_of(R"(
    n: i64[]
    x: f32[2]
    b: f32[2]
    y = Loop(n, _, x, b, carried=1)
      body:
        i: i64[]
        c: bool[]
        v: f32[2]
        bias: f32[2]
        w = Add(v, bias)
        return c, w
    return y
  )");
  EXPECT_THAT(elements<float>(run(*model, {number(1000), floats({0, 1}), floats({1, 2})}).at(0)), ElementsAre(1000, 2001));
}

TEST(Loop, EndsWhenItsConditionSaysSo) {
  const auto results = run(R"(
    x: i64[]
    go: bool[]
    y = Loop(_, go, x, carried=1)
      body:
        i: i64[]
        c: bool[]
        v: i64[]
        w = Add(v, i64[]{3})
        more = Less(w, i64[]{10})
        return more, w
    return y
  )",
                           {number(0), flag(true)});
  EXPECT_THAT(elements<int64_t>(results.at(0)), ElementsAre(12));
}

TEST(Loop, BodiesNestAndReadWhatIsAroundThem) {
  const auto results = run(R"(
    n: i64[]
    x: i64[]
    y = Loop(n, _, x, n, carried=1)
      body:
        i: i64[]
        c: bool[]
        v: i64[]
        m: i64[]
        odd = Mod(i, i64[]{2})
        is_odd = Cast(odd, to=bool)
        w = Loop(m, _, v, i, is_odd, carried=1)
          body:
            j: i64[]
            d: bool[]
            u: i64[]
            k: i64[]
            add: bool[]
            t = If(add, u, k)
              then:
                a: i64[]
                b: i64[]
                s = Add(a, b)
                return s
              else:
                a: i64[]
                b: i64[]
                s = Sub(a, b)
                return s
            return d, t
        return c, w
    return y
  )",
                           {number(4), number(0)});
  EXPECT_THAT(elements<int64_t>(results.at(0)), ElementsAre(4 * (0 + 1 - 2 + 3)));
}

TEST(Loop, ScannedOutputsMayNotGrowBeyondTheLimit) {
  constexpr std::string_view kEndless = R"(
    go: bool[]
    x: f32[1024]
    y = Loop(_, go, x, carried=0)
      body:
        i: i64[]
        c: bool[]
        v: f32[1024]
        w = Neg(v)
        return c, w
    return y
  )";
  const auto model = model_of(kEndless, test::best(), {.max_arena_bytes = size_t{1} << 20});
  EXPECT_THAT(failure(*model, {flag(true), floats(std::vector<float>(1024, 1.f))}),
              HasSubstr("node 'y' (Loop): its turns have made more than the limit of 1048576 bytes"));
}

TEST(Loop, EndsWhenNobodyWaitsAnyMore) {
  const auto model = model_of(R"(
    go: bool[]
    x: i64[]
    y = Loop(_, go, x, carried=1)
      body:
        i: i64[]
        c: bool[]
        v: i64[]
        w = Neg(v)
        return c, w
    return y
  )");
  std::atomic<bool> cancelled = false;
  std::thread caller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancelled = true;
  });
  const auto results = model->run(std::vector{flag(true), number(1)}, &cancelled);
  caller.join();
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().code, Code::kCancelled);
}

TEST(If, BranchesMayDifferInShape) {
  const auto model = model_of(R"(
    c: bool[]
    x: f32[n]
    y = If(c, x)
      then:
        a: f32[n]
        r = Concat(a, a, axis=0)
        return r
      else:
        a: f32[n]
        r = Neg(a)
        return r
    z = Neg(y)
    return z
  )");
  EXPECT_THAT(elements<float>(run(*model, {flag(true), floats({1, 2})}).at(0)), ElementsAre(-1, -2, -1, -2));
  EXPECT_THAT(elements<float>(run(*model, {flag(false), floats({1, 2})}).at(0)), ElementsAre(1, 2));
}

TEST(If, ABranchThatContradictsItselfHurtsOnlyWhenItIsTaken) {
  const auto model = model_of(R"(
    c: bool[]
    x: f32[3]
    y = If(c, x)
      then:
        a: f32[3]
        r = Reshape(a, i64{2,2})
        return r
      else:
        a: f32[3]
        return a
    return y
  )");
  EXPECT_EQ(shape_of(run(*model, {flag(false), floats({1, 2, 3})}).at(0)), "[3]");
  EXPECT_THAT(failure(*model, {flag(true), floats({1, 2, 3})}), HasSubstr("node 'r' (Reshape): cannot reshape [3] to [2,2]"));
}

TEST(Scan, DirectionsAndAxes) {
  const auto results = run(R"(
    s: f32[2]
    x: f32[2,3]
    last, sums = Scan(s, x, carried=1, scanned=1, input_axes=[1], input_directions=[1], output_axes=[-1], output_directions=[1])
      body:
        state: f32[2]
        column: f32[2]
        sum = Add(state, column)
        return sum, sum
    return last, sums
  )",
                           {floats({0, 0}), tensor<float>(Shape{2, 3}, {1, 2, 3, 10, 20, 30})});
  EXPECT_THAT(elements<float>(results.at(0)), ElementsAre(6, 60));
  EXPECT_EQ(shape_of(results.at(1)), "[2,3]");
  EXPECT_THAT(elements<float>(results.at(1)), ElementsAre(6, 5, 3, 60, 50, 30));
}

TEST(Scan, RowsOfABatchHaveLengthsOfTheirOwn) {
  const auto results = run(R"(
    lengths: i64[2]
    s: f32[2]
    x: f32[2,2]
    last, sums = Scan(lengths, s, x, batched=1, carried=1, scanned=1)
      body:
        state: f32[]
        each: f32[]
        sum = Add(state, each)
        return sum, sum
    return last, sums
  )",
                           {integers({1, 2}), floats({0, 100}), tensor<float>(Shape{2, 2}, {1, 2, 3, 4})});
  EXPECT_THAT(elements<float>(results.at(0)), ElementsAre(1, 107));
  EXPECT_THAT(elements<float>(results.at(1)), ElementsAre(1, 0, 103, 107));
}

// ---- sequences and optionals ----

TEST(Sequence, GrowsInALoopAndIsPutTogether) {
  const auto results = run(R"(
    n: i64[]
    x: f32[2]
    empty = SequenceEmpty(dtype=f32)
    all = Loop(n, _, empty, x, carried=1)
      body:
        i: i64[]
        c: bool[]
        list: sequence(f32[2])
        v: f32[2]
        f = Cast(i, to=f32)
        w = Mul(v, f)
        longer = SequenceInsert(list, w)
        return c, longer
    y = ConcatFromSequence(all, axis=0, new_axis=1)
    k = SequenceLength(all)
    last = SequenceAt(all, i64[]{-1})
    return y, k, last
  )",
                           {number(3), floats({1, 2})});
  EXPECT_EQ(shape_of(results.at(0)), "[3,2]");
  EXPECT_THAT(elements<int64_t>(results.at(1)), ElementsAre(3));
  EXPECT_THAT(elements<float>(results.at(2)), ElementsAre(2, 4));
}

TEST(Sequence, PositionsOutsideAreNamed) {
  const auto model = model_of("s: sequence(f32[2])\ni: i64[]\ny = SequenceAt(s, i)\nreturn y\n");
  EXPECT_THAT(failure(*model, {Value::sequence(DType::kFloat32, {floats({1, 2})}), number(1)}),
              HasSubstr("node 'y' (SequenceAt): position 1 is outside a sequence of 1"));
  EXPECT_THAT(failure(*model, {floats({1, 2}), number(0)}), HasSubstr("input 's' expects sequence(f32[2]), the request has f32[2]"));
}

TEST(Optional, AnInputMayBeEmptyOrWhatItHolds) {
  const auto model = model_of("o: optional(f32[2])\nh = OptionalHasElement(o)\nreturn h\n");
  EXPECT_THAT(elements<bool>(run(*model, {Value::optional(DType::kFloat32)}).at(0)), ElementsAre(false));
  EXPECT_THAT(elements<bool>(run(*model, {Value::optional(floats({1, 2}))}).at(0)), ElementsAre(true));
  EXPECT_THAT(elements<bool>(run(*model, {floats({1, 2})}).at(0)), ElementsAre(true));
}

// ---- strings ----

TEST(Strings, AreMovedByIndex) {
  const auto results = run(R"(
    x: str[2,2]
    y: str[2]
    t = Transpose(x)
    g = Gather(x, i64{1,0,1}, axis=0)
    c = Concat(t, g, axis=0)
    e = Equal(x, y)
    w = Where(e, x, y)
    s = Shape(c)
    return c, w, s
  )",
                           {strings(Shape{2, 2}, {"a", "b", "c", "d"}), strings(Shape{2}, {"a", "d"})});
  EXPECT_THAT(results.at(0).tensor->strings, ElementsAre("a", "c", "b", "d", "c", "d", "a", "b", "c", "d"));
  EXPECT_THAT(results.at(1).tensor->strings, ElementsAre("a", "d", "a", "d"));
  EXPECT_THAT(elements<int64_t>(results.at(2)), ElementsAre(5, 2));
}

TEST(Strings, ArithmeticOnThemIsRefusedAtLoad) {
  EXPECT_THAT(test::refusal_of("x: str[2]\ny = Add(x, x)\nreturn y\n"), HasSubstr("'y' (Add): no kernel computes it on strings"));
}

TEST(Strings, AndSequencesNeedNoStagesOfTheirOwn) {
  const auto model = model_of(R"(
    x: str[2]
    a = SequenceConstruct(x, x)
    b = SequenceInsert(a, x)
    c = ConcatFromSequence(b, axis=0)
    d = SequenceErase(b)
    n = SequenceLength(d)
    y = Transpose(c)
    return y, n
  )");
  const auto results = run(*model, {strings(Shape{2}, {"p", "q"})});
  EXPECT_EQ(shape_of(results.at(0)), "[6]");
  EXPECT_THAT(elements<int64_t>(results.at(1)), ElementsAre(2));
  EXPECT_EQ(count(model->describe_last_run(), "stage"), 1) << model->describe_last_run();
}

// ---- empty tensors ----

TEST(Empty, DimensionsOfZeroGoThroughPlans) {
  const auto model =
      model_of("x: f32[n,3]\na = MatMul(x, w[3,2])\nb = Relu(a)\nc = Concat(b, f32[1,2]{5,6}, axis=0)\nreturn c\n", test::best());
  ASSERT_TRUE(model->planned());
  const auto results = run(*model, {tensor<float>(Shape{0, 3}, {})});
  EXPECT_EQ(shape_of(results.at(0)), "[1,2]");
  EXPECT_THAT(elements<float>(results.at(0)), ElementsAre(5, 6));
}

TEST(Empty, ReductionsOfNothingGiveTheirNeutralElements) {
  const auto results = run(R"(
    x: f32[n,2]
    s = ReduceSum(x, axes=[0], keepdims=0)
    p = ReduceProd(x, axes=[0], keepdims=0)
    m = ReduceMax(x, axes=[0], keepdims=0)
    return s, p, m
  )",
                           {tensor<float>(Shape{0, 2}, {})});
  EXPECT_THAT(elements<float>(results.at(0)), ElementsAre(0, 0));
  EXPECT_THAT(elements<float>(results.at(1)), ElementsAre(1, 1));
  const float lowest = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(elements<float>(results.at(2)), ElementsAre(lowest, lowest));
}

TEST(Empty, WhatTheDataLeavesEmptyGoesOn) {
  const auto results = run("x: f32[n]\np = NonZero(x)\nt = Transpose(p)\nu = Mul(t, i64{2})\nreturn u\n", {floats({0, 0})});
  EXPECT_EQ(shape_of(results.at(0)), "[0,1]");
}

}  // namespace
}  // namespace serin::engine
