// Graphs that nobody sane exports: random operators on random shapes with random attributes, extremes among them. Inference may refuse or
// accept; it must not crash, and what it accepts must survive printing, parsing, binding, every pass and the batchable proof.

#include <limits>
#include <random>

#include "runtime/graph/passes/pass.h"
#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

class Hostile {
 public:
  explicit Hostile(uint64_t seed) : random_(seed) {}

  Graph graph() {
    Graph graph;
    for (int i = 0; i < 3; ++i) values_.push_back(graph.add_input("in" + std::to_string(i), type()));
    for (int i = 0; i < 4; ++i) values_.push_back(graph.add_constant("k" + std::to_string(i), constant()));
    const size_t nodes = 1 + below(4);
    for (size_t i = 0; i < nodes; ++i) add_node(graph, "n" + std::to_string(i));
    graph.set_outputs({values_.back()});
    return graph;
  }

 private:
  size_t below(size_t limit) { return random_() % limit; }

  int64_t number() {
    constexpr int64_t kNumbers[] = {
        0, 1, 2, 3, 4, -1, -2, 8, 16, 255, INT32_MAX, INT32_MIN, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    return kNumbers[below(below(3) == 0 ? std::size(kNumbers) : 7)];
  }

  Type type() {
    constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat32, DType::kInt64, DType::kBool};
    Dims dims;
    for (size_t rank = below(6), i = 0; i < rank; ++i)
      dims.push_back(below(3) == 0 ? Dim::symbol(below(2) ? "n" : "s") : Dim(static_cast<int64_t>(below(6))));
    Type made = Type::tensor(kDTypes[below(std::size(kDTypes))], std::move(dims));
    if (below(10) == 0) made.shape.reset();
    return made;
  }

  std::vector<int64_t> numbers() {
    std::vector<int64_t> list(below(6));
    for (int64_t& each : list) each = number();
    return list;
  }

  ConstantPtr constant() {
    if (below(3) == 0) return make_scalar(below(2) ? DType::kFloat32 : DType::kInt64, static_cast<double>(below(5)));
    if (below(3) == 0) {
      const int64_t value = number();
      return make_constant(DType::kInt64, Shape{}, &value);
    }
    return make_constant(numbers());
  }

  void add_node(Graph& graph, const std::string& name) {
    Op op{};
    do op = static_cast<Op>(below(kOpCount));
    while (op == Op::kIf || op == Op::kLoop || op == Op::kScan || op == Op::kSequenceMap);
    const OpSchema& expected = schema(op);
    const auto most = static_cast<size_t>(expected.max_inputs < 0 ? expected.min_inputs + 3 : expected.max_inputs);
    const size_t count = static_cast<size_t>(expected.min_inputs) + below(most - static_cast<size_t>(expected.min_inputs) + 1);
    std::vector<ValueId> operands;
    for (size_t i = 0; i < count; ++i) operands.push_back(values_[below(values_.size())]);
    const NodeId id = graph.add_node(op, name, std::move(operands), attributes(),
                                     expected.outputs < 0 ? 1 + below(3) : static_cast<size_t>(expected.outputs));
    values_.push_back(graph.output(id));
  }

  Attributes attributes() {
    constexpr const char* kIntegers[] = {"axis",      "group", "keepdims", "noop_with_empty_axes", "ceil_mode", "transA", "transB",
                                         "allowzero", "start", "end"};
    constexpr const char* kLists[] = {"axes", "perm", "strides", "dilations", "pads", "kernel_shape", "starts", "ends", "steps", "split"};
    Attributes made;
    for (const char* key : kIntegers) {
      if (below(3) == 0) made[key] = number();
    }
    for (const char* key : kLists) {
      if (below(3) == 0) made[key] = numbers();
    }
    if (below(4) == 0) made["auto_pad"] = std::string(below(2) ? "SAME_UPPER" : "SAME_LOWER");
    if (below(2) == 0) made["to"] = std::string(below(2) ? "f32" : "i64");
    if (below(8) == 0) made["value"] = make_constant(numbers());
    if (below(8) == 0) made["mode"] = std::string(below(2) ? "reflect" : "edge");
    return made;
  }

  std::mt19937_64 random_;
  std::vector<ValueId> values_;
};

TEST(Hostile, NothingCrashes) {
  int accepted = 0;
  for (uint64_t seed = 0; seed < 30000; ++seed) {
    Graph graph = Hostile(seed).graph();
    ASSERT_TRUE(verify(graph)) << verify(graph).error().message;
    if (!infer_shapes(graph)) continue;
    ++accepted;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(graph, {.types = true}));
    const auto reparsed = parse(print(graph));
    ASSERT_TRUE(reparsed) << reparsed.error().message;
    EXPECT_EQ(print(*reparsed), print(*parse(print(*reparsed))));
    (void)prove_batchable(graph);
    (void)bind(graph, {{"n", static_cast<int64_t>(seed % 4)}, {"s", 3}});
    const auto timings = run_passes(graph);
    // A pass may learn what refutes the graph (an operand that turns out to be known); it must not break one.
    EXPECT_TRUE(timings || timings.error().code == Code::kInvalidArgument) << timings.error().message;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(accepted, 1000) << "otherwise this tests little";
}

}  // namespace
}  // namespace serin::graph
