// attention_layers.cc: MultiHeadAttention, and attention of single vectors.
//
// A masked score is lowered by 1e9, as Keras does. So a query that may attend to nothing attends to all, where a mask of booleans would give NaN.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "runtime/formats/keras/layer.h"

namespace serin::formats::keras {

namespace {

constexpr double kMaskedScore = -1e9;

bool argument_flag(const Layer& layer, std::string_view key) { return layer.call()["kwargs"][key].boolean().value_or(false); }

/// Ones where both count.
ValueId both(graph::Builder& b, ValueId a, ValueId c) { return a == kNone ? c : c == kNone ? a : b.add(Op::kMul, {a, c}); }

/// A mask [batch, steps] as numbers, with axes of size 1 at these places.
ValueId mask_of(Layer& layer, const ValuePtr& mask, const List& axes) {
  if (!mask) return kNone;
  return layer.b().unsqueeze(layer.b().cast(layer.scope().plain(*mask), DType::kFloat32), axes);
}

/// What is added to scores: 0 where `counts` is 1.
ValueId lowered(graph::Builder& b, ValueId counts) {
  const ValueId one = b.number(DType::kFloat32, 1);
  return b.add(Op::kMul, {b.add(Op::kSub, {one, counts}), b.number(DType::kFloat32, kMaskedScore)});
}

class MultiHead {
 public:
  explicit MultiHead(Layer& layer)
      : layer_(layer), b_(layer.b()), heads_(layer.integer("num_heads", 1)), key_(layer.integer("key_dim", 1)) {
    value_ = layer.integer("value_dim", key_);
  }

  void import() {
    if (heads_ < 1 || key_ < 1 || value_ < 1 || heads_ > (1 << 16) || key_ > (1 << 24) || value_ > (1 << 24))
      return layer_.corrupt("sizes of heads");
    if (layer_.is_set("attention_axes") && layer_.all_integers("attention_axes") != List{1}) return layer_.unsupported("attention_axes");
    const auto named = [&](std::string_view name, size_t place) {
      const auto found = layer_.named(name);
      return found.empty() ? place : found.front();
    };
    const bool scores = argument_flag(layer_, "return_attention_scores");
    if (scores) return layer_.unsupported("return_attention_scores");
    const size_t query = named("query", 0), value = named("value", 1), key = named("key", layer_.positional() > 2 ? 2 : value);
    for (const size_t i : {query, value, key})
      if (layer_.rank(i) != 3) return layer_.unsupported("inputs that are not [batch, steps, features]");
    const ValueId q = heads(query, "query_dense/", key_), k = heads(key, "key_dense/", key_), v = heads(value, "value_dense/", value_);
    const auto mask = [&](std::string_view name, size_t input) {
      const auto given = layer_.named(name);
      return given.empty() ? layer_.input(input).mask : layer_.value(given.front());
    };
    ValueId counts = both(b_, mask_of(layer_, mask("query_mask", query), {1, 3}), mask_of(layer_, mask("value_mask", value), {1, 2}));
    if (key != value) counts = both(b_, counts, mask_of(layer_, mask("key_mask", key), {1, 2}));
    if (const auto given = layer_.named("attention_mask"); !given.empty()) {
      const auto rank = layer_.rank(given[0]);
      if (rank != 3 && rank != 4) return layer_.unsupported("an attention_mask of this rank");
      const ValueId pairs = b_.cast(layer_.plain(given[0]), DType::kFloat32);
      counts = both(b_, counts, rank == 3 ? b_.unsqueeze(pairs, {1}) : pairs);
    }
    std::vector<ValueId> operands = {q, k, v};
    if (counts != kNone) operands.push_back(lowered(b_, counts));
    graph::Attributes attributes{{"scale", 1 / std::sqrt(static_cast<double>(key_))}};
    if (argument_flag(layer_, "use_causal_mask")) attributes.emplace("is_causal", int64_t{1});
    const ValueId attended = b_.transpose(b_.add(Op::kAttention, operands, std::move(attributes)), {0, 2, 1, 3});
    const ValueId rows = b_.reshape(attended, {0, 0, heads_ * value_});
    const std::string inner = folder_of("output_dense/");
    const graph::ConstantPtr kernel = layer_.constant_weight(0, {heads_, value_, -1}, "the output's kernel", inner);
    if (!kernel) return;
    const int64_t width = kernel->shape[2];
    ValueId y = b_.add(Op::kMatMul, {rows, flat(kernel, inner + "vars/0", Shape{heads_ * value_, width})});
    if (layer_.flag("use_bias", true)) y = b_.add(Op::kAdd, {y, layer_.weight(1, {width}, "the output's bias", inner)->plain});
    layer_.set_mask(layer_.input(query).mask);
    layer_.out(y);
  }

 private:
  /// Versions of Keras save the private or the public name.
  std::string folder_of(const std::string& name) const { return layer_.has_weight(0, "_" + name) ? "_" + name : name; }

  ValueId flat(const graph::ConstantPtr& constant, const std::string& name, const Shape& shape) {
    const ValueId id = b_.constant(layer_.folder() + name, constant);
    return b_.cast(layer_.scope().reshaped(id, shape), DType::kFloat32);
  }

  /// x [batch, steps, features] -> [batch, heads, steps, size]
  ValueId heads(size_t input, const std::string& name, int64_t size) {
    const std::string inner = folder_of(name);
    const graph::ConstantPtr kernel =
        layer_.constant_weight(0, {layer_.size(input, 2), heads_, size}, name.substr(0, name.size() - 1), inner);
    if (!kernel) return kNone;
    ValueId y = b_.add(Op::kMatMul, {layer_.scope().plain(*layer_.as_float(layer_.value(input))),
                                     flat(kernel, inner + "vars/0", Shape{kernel->shape[0], heads_ * size})});
    if (layer_.flag("use_bias", true)) {
      const graph::ConstantPtr bias = layer_.constant_weight(1, {heads_, size}, "a bias", inner);
      if (!bias) return kNone;
      y = b_.add(Op::kAdd, {y, flat(bias, inner + "vars/1", Shape{heads_ * size})});
    }
    return b_.transpose(b_.reshape(y, {0, 0, heads_, size}), {0, 2, 1, 3});
  }

  Layer& layer_;
  graph::Builder& b_;
  int64_t heads_, key_, value_ = 1;
};

void import_multi_head(Layer& layer) { MultiHead(layer).import(); }

/// The masks of query and value: those of the call, a list in which one may be absent, or of the inputs.
std::array<ValuePtr, 2> dot_masks(Layer& layer) {
  const auto given = layer.named("mask");
  if (given.empty()) return {layer.input(0).mask, layer.input(1).mask};
  std::array<ValuePtr, 2> masks;
  size_t place = 0, tensor = 0;
  for (const Json& each : layer.call()["kwargs"]["mask"].items()) {
    if (!each.is_null() && tensor < given.size()) {
      const size_t input = given[tensor++];
      if (place < 2) masks[place] = layer.value(input);
    }
    ++place;
  }
  return masks;
}

/// Query, value and perhaps key, in one list.
void import_dot_attention(Layer& layer) {
  graph::Builder& b = layer.b();
  if (layer.text("score_mode", "dot") != "dot") return layer.unsupported("score_mode 'concat'");
  if (argument_flag(layer, "use_causal_mask") || argument_flag(layer, "return_attention_scores"))
    return layer.unsupported("this call: a causal mask, or scores");
  const size_t key = layer.positional() > 2 ? 2 : 1;
  for (const size_t i : {size_t{0}, size_t{1}, key})
    if (layer.rank(i) != 3) return layer.unsupported("inputs that are not [batch, steps, features]");
  const auto masks = dot_masks(layer);
  const ValueId q = layer.plain(0), k = layer.plain(key), v = layer.plain(1);
  ValueId scores = kNone;
  if (layer.class_name() == "AdditiveAttention") {
    ValueId sums = b.add(Op::kTanh, {b.add(Op::kAdd, {b.unsqueeze(q, {2}), b.unsqueeze(k, {1})})});
    if (layer.flag("use_scale", true)) sums = b.add(Op::kMul, {sums, layer.weight(0, {layer.size(0, 2)}, "the scale")->plain});
    scores = b.add(Op::kReduceSum, {sums}, {{"axes", List{3}}, {"keepdims", int64_t{0}}});
  } else {
    scores = b.add(Op::kMatMul, {q, b.transpose(k, {0, 2, 1})});
    if (layer.flag("use_scale")) scores = b.add(Op::kMul, {scores, layer.weight(0, {}, "the scale")->plain});
  }
  if (const ValueId counts = mask_of(layer, masks[1], {1}); counts != kNone) scores = b.add(Op::kAdd, {scores, lowered(b, counts)});
  ValueId y = b.add(Op::kMatMul, {b.add(Op::kSoftmax, {scores}, {{"axis", int64_t{-1}}}), v});
  if (const ValueId counts = mask_of(layer, masks[0], {2}); counts != kNone) y = b.add(Op::kMul, {y, counts});
  layer.set_mask(masks[0]);
  layer.out(y);
}

constexpr LayerRow kAttention[] = {
    {"AdditiveAttention", import_dot_attention},
    {"Attention", import_dot_attention},
    {"MultiHeadAttention", import_multi_head},
};

}  // namespace

std::span<const LayerRow> attention_layers() { return kAttention; }

}  // namespace serin::formats::keras
