// drawn_padding.cc
//
// Graphs are sums of what exporters write and of what nobody should: masks of keys, of queries and of both, of the lowest number and of middling ones, joined across
// rows, moved, turned around; shares that are pooled; tables with -inf in them; divisions by nothing.

#include "tests/runtime/engine/drawn_padding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "runtime/graph/proofs/paddable.h"

namespace serin::engine::test {
namespace {

/// `@X` is a value of kind X that is there, `#` a number of its own; the last of the lines, which `;` parts, is the new value. Kinds: A f32[n,s,4], S f32[n,s,s],
/// K f32[n,1,s], Q f32[n,s,1], F f32[n,s]; in bool k [n,1,s], q [n,s,1], b [n,s,s]; L is a number that hides.
struct Template {
  int weight;
  char kind;
  const char* text;
};
constexpr Template kTemplates[] = {
    {3, 'K', "Unsqueeze(@F, axes=[1])"},
    {2, 'Q', "Unsqueeze(@F, axes=[2])"},
    {3, 'K', "Sub(1.0, @K)"},
    {1, 'Q', "Sub(1.0, @Q)"},
    {4, 'K', "Mul(@K, @L)"},
    {1, 'Q', "Mul(@Q, @L)"},
    {1, 'K', "Add(@K, @K)"},
    {1, 'K', "Mul(@K, @K)"},
    {1, 'F', "Mul(@F, @F)"},
    {1, 'F', "Gather(@F, i64[1]{0}, axis=0)"},
    {1, 'F', "Slice(@F, i64{-1}, i64{-9999}, i64{0}, i64{-1})"},
    {1, 'F', "Slice(@F, i64{-1}, i64{-9999}, i64{1}, i64{-1})"},
    {1, 'F', "found# = Equal(ids, i64[]{1}); Cast(found#, to=f32)"},
    {2, 'k', "Cast(@K, to=bool)"},
    {2, 'q', "Cast(@Q, to=bool)"},
    {1, 'k', "Not(@k)"},
    {1, 'k', "And(@k, @k)"},
    {2, 'b', "And(@k, @q)"},
    {1, 'b', "And(@k, @b)"},
    {1, 'b', "LessOrEqual(atk, atq)"},
    {1, 'b', "Less(atk, atq)"},
    {1, 'q', "GreaterOrEqual(atq, i64[]{0})"},
    {1, 'q', "Greater(atq, i64[]{0})"},
    {1, 'k', "Less(atk, i64[]{3})"},
    {2, 'K', "Where(@k, 0.0, @L)"},
    {1, 'Q', "Where(@q, 0.0, @L)"},
    {1, 'S', "nothing# = Sub(@S, @S); Where(@b, nothing#, @L)"},
    {3, 'S', "table# = Transpose(@A, perm=[0,2,1]); MatMul(@A, table#)"},
    {2, 'S', "Tanh(@S)"},
    {6, 'S', "Add(@S, @K)"},
    {1, 'S', "Add(@S, @Q)"},
    {1, 'S', "Mul(@S, @K)"},
    {1, 'S', "Mul(@S, 0.3)"},
    {2, 'S', "Where(@k, @S, @L)"},
    {1, 'S', "Where(@k, @L, @S)"},
    {1, 'S', "Where(@b, @S, @L)"},
    {1, 'S', "Where(@q, @S, @L)"},
    {6, 'S', "Softmax(@S, axis=-1)"},
    {1, 'S', "Softmax(@S, axis=1)"},
    {1, 'S', "Transpose(@S, perm=[0,2,1])"},
    {8, 'A', "MatMul(@S, @A)"},
    {1, 'A', "Add(@A, @A)"},
    {1, 'A', "Mul(@A, @Q)"},
    {1, 'A', "Div(@A, @A)"},
    {2, 'A', "Where(@q, @A, 0.0)"},
    {1, 'A', "Tanh(@A)"},
    {1, 'A', "Log(@A)"},
    {1, 'A', "MatMul(@A, weight#[4,4])"},
    {1, 'A', "LayerNormalization(@A, gain#[4], shift#[4])"},
    {1, 'Q', "ReduceL2(@A, axes=[2])"},
    {1, 'A', "both# = Concat(@A, @A, axis=2); Slice(both#, i64{2}, i64{6}, i64{2})"},
    {1, 'A', "Slice(@A, i64{-1}, i64{-9999}, i64{1}, i64{-1})"},
    {1, 'A', "Slice(@A, i64{-1}, i64{-9999}, i64{2}, i64{-1})"},
    {1, 'A', "GatherElements(@A, index#:i64[1,1,4]{3,1,2,0}, axis=2)"},
    {1, 'A', "size# = Shape(@A); index# = Expand(picks#:i64[1,1,4]{3,1,2,0}, size#); GatherElements(@A, index#, axis=2)"},
    {1, 'A', "size# = Shape(@A); index# = Expand(picks#:i64[1,1,4]{0,1,0,0}, size#); GatherElements(@A, index#, axis=1)"},
    {1, 'A', "Gather(table#[9,4], ids)"},
    {1, 'A', "found# = Gather(table#:f32[9,2]{-inf,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6}, ids); Concat(found#, found#, axis=2)"},
    {1, 'A', "upto# = CumSum(ids, i64[]{1}); Gather(table#[99,4], upto#)"},
    {1, 'A', "upto# = CumSum(ids, i64[]{1}, reverse=1); Gather(table#[99,4], upto#)"},
    {1, 'A', "upto# = Gather(table#[30,4], at); Add(@A, upto#)"},
    {1, 'A', "CumSum(@A, i64[]{1})"},
};
const std::vector<std::string> kLows = {"-3.4e38", "-3.4e38", "-10000.0", "-1e9", "-100.0", "-inf", "-30000.0"};
constexpr const char* kEnds[] = {
    "y = Identity(@A)\n", "k = Mul(@A, @Q)\ny = ReduceSum(k, axes=[1])\n",        "y = Gather(@A, i64[]{0}, axis=1)\n",
    "y = Identity(@S)\n", "k = Where(@q, @A, 0.0)\ny = ReduceSum(k, axes=[1])\n", "y = ReduceMax(@A, axes=[1])\n"};

class Drawing {
 public:
  explicit Drawing(uint32_t seed) : random_(seed) {}

  std::string graph() {
    text_ =
        "x: f32[n,s,4]\nm: i64[n,s]\nids: i64[n,s]\nf = Cast(m, to=f32)\nshape = Shape(m)\nl = Gather(shape, i64[]{1})\nat = "
        "Range(i64[]{0}, l, i64[]{1})\n"
        "atk = Unsqueeze(at, axes=[0,1])\natq = Unsqueeze(at, axes=[0,2])\n";
    values_ = {{'A', {"x"}}, {'F', {"f"}}};
    for (int steps = pick({25, 50, 80}); steps > 0; --steps) add();
    std::optional<std::string> end;
    while (!end) end = filled(kEnds[random_() % std::size(kEnds)]);
    return text_ + *end + "return y\n";
  }
  int pick(std::initializer_list<int> list) { return list.begin()[random_() % list.size()]; }
  uint32_t operator()() { return static_cast<uint32_t>(random_()); }

 private:
  void add() {
    static const std::vector<const Template*> weighted = [] {
      std::vector<const Template*> list;
      for (const Template& each : kTemplates) list.insert(list.end(), static_cast<size_t>(each.weight), &each);
      return list;
    }();
    const Template& chosen = *weighted[random_() % weighted.size()];
    std::optional<std::string> lines = filled(chosen.text);
    if (!lines) return;
    const std::string name = "v" + std::to_string(made_++);
    const size_t last = lines->rfind("; ");
    lines->insert(last == std::string::npos ? 0 : last + 2, name + " = ");
    for (size_t at = 0; (at = lines->find("; ", at)) != std::string::npos;) lines->replace(at, 2, "\n");
    text_ += *lines + "\n";
    values_[chosen.kind].push_back(name);
  }

  /// Nothing where a kind has no value yet.
  std::optional<std::string> filled(std::string_view text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '#') {
        result += std::to_string(made_);
      } else if (text[i] == '@') {
        ++i;
        const std::vector<std::string>& there = text[i] == 'L' ? kLows : values_[text[i]];
        if (there.empty()) return std::nullopt;
        const size_t recent = text[i] != 'L' && random_() % 10 < 7 ? std::min<size_t>(4, there.size()) : there.size();
        result += there[there.size() - 1 - random_() % recent];
      } else {
        result += text[i];
      }
    }
    return result;
  }

  std::mt19937 random_;
  std::string text_;
  std::map<char, std::vector<std::string>> values_;
  int made_ = 0;
};

/// Each row of `m` has an element that counts.
std::vector<Tensor> request(Drawing& draw, int64_t rows, int64_t length) {
  Tensor x = random_tensor({rows, length, 4}, draw()), m(DType::kInt64, {rows, length}), ids(DType::kInt64, {rows, length});
  for (int64_t& id : ids.view().span<int64_t>()) id = draw() % 9;
  for (int64_t& counts : m.view().span<int64_t>()) counts = draw.pick({0, 0, 1, 1, 1});
  for (int64_t row = 0; row < rows; ++row) m.view().as<int64_t>()[row * length + draw() % static_cast<uint32_t>(length)] = 1;
  return {x, m, ids};
}

/// From one shape to another of the same rank, as far as both go; zeros elsewhere.
Tensor resized(const Tensor& from, const Shape& shape) {
  Tensor to(from.view().dtype, shape);
  const size_t size = dtype_size(from.view().dtype);
  std::memset(to.view().data, 0, to.view().bytes());
  for (int64_t i = 0; i < shape.elements(); ++i) {
    int64_t rest = i, source = 0, stride = 1;
    bool there = true;
    for (size_t axis = shape.rank(); axis-- > 0;) {
      const int64_t at = rest % shape[axis];
      rest /= shape[axis];
      there = there && at < from.view().shape[axis];
      source += at * stride;
      stride *= from.view().shape[axis];
    }
    if (there)
      std::memcpy(to.view().as<std::byte>() + static_cast<size_t>(i) * size,
                  from.view().as<std::byte>() + static_cast<size_t>(source) * size, size);
  }
  return to;
}

/// Nothing where the model cannot run it: an index that is not there.
std::optional<Tensor> answer(Model& model, const std::vector<Tensor>& inputs) {
  const auto bindings = bindings_for(model.inputs(), views(inputs));
  auto executor = model.executor(*bindings);
  if (!executor) return std::nullopt;
  std::vector<Tensor> outputs = make_outputs(**executor);
  std::vector<TensorView> out = views(outputs);
  if (!(*executor)->run(views(inputs), out)) return std::nullopt;
  return outputs[0];
}

bool something_counts(const std::vector<Tensor>& inputs, const std::vector<size_t>& masks) {
  const Shape& shape = inputs[1].view().shape;
  for (int64_t row = 0; row < shape[0]; ++row) {
    bool counts = masks.empty();
    for (int64_t i = row * shape[1]; i < (row + 1) * shape[1]; ++i)
      counts |= std::ranges::all_of(masks, [&](size_t mask) { return inputs[mask].view().as<const int64_t>()[i] == 1; });
    if (!counts) return false;
  }
  return true;
}

}  // namespace

Held hold_padding(uint32_t graphs, const kernels::Backend& backend, const LoadOptions& options, float tolerance) {
  constexpr int64_t kBucket = 8;
  const auto alike = [tolerance](float a, float b) {
    return std::isnan(b) ? std::isnan(a) : a == b || std::abs(a - b) <= tolerance * (1 + std::abs(b));
  };
  Held held;
  for (uint32_t seed = 0; seed < graphs; ++seed) {
    Drawing draw(seed);
    const std::string text = draw.graph();
    auto graph = graph::parse(text);
    EXPECT_TRUE(graph) << graph.error().message << "\n" << text;
    if (!graph) return held;
    auto made = Model::from_graph(std::move(*graph), backend, options);
    if (!made || !(*made)->planned()) continue;  // rows of a batch are not broadcast to another number
    Model& model = **made;
    const graph::Paddable proof = graph::prove_paddable(model.graph(), "s");
    if (!proof.yes) continue;
    ++held.proven;
    for (int i = 0; i < 6; ++i) {
      const int64_t rows = 1 + draw() % 2, length = 1 + draw() % (kBucket - 1);
      const std::vector<Tensor> own = request(draw, rows, length);
      if (!something_counts(own, proof.masks)) continue;
      const auto alone = answer(model, own);
      if (!alone) continue;
      const auto padded =
          answer(model, {resized(own[0], {rows, kBucket, 4}), resized(own[1], {rows, kBucket}), resized(own[2], {rows, kBucket})});
      if (!padded) continue;
      const Tensor cropped = resized(*padded, alone->view().shape);
      const auto expected = alone->values<float>(), actual = cropped.values<float>();
      ++held.compared;
      EXPECT_TRUE(std::ranges::equal(actual, expected, alike)) << "seed " << seed << ", " << rows << " rows of " << length << "\n" << text;
    }
  }
  return held;
}

}  // namespace serin::engine::test
