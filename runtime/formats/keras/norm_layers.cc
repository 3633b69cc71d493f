// norm_layers.cc: normalisations by stored or computed statistics, and scales of inputs.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/formats/keras/layer.h"

namespace serin::formats::keras {

namespace {

/// The only axis of a setting, counted from the begin.
std::optional<int64_t> axis_of(Layer& layer, std::string_view key, int64_t fallback) {
  const List axes = layer.is_set(key) ? layer.all_integers(key) : List{fallback};
  const auto rank = static_cast<int64_t>(layer.rank(0).value_or(0));
  if (axes.size() != 1) return std::nullopt;
  return axes[0] < 0 ? axes[0] + rank : axes[0];
}

/// Weights in order, of which some may be absent: their defaults stand for them.
class Weights {
 public:
  Weights(Layer& layer, int64_t size) : layer_(layer), size_(size) {}
  ValueId next(bool present, float fallback, std::string_view what) {
    if (present) return layer_.weight(index_++, {size_}, what)->plain;
    if (size_ > (1 << 24) || layer_.failed()) return kNone;
    return layer_.floats(std::vector<float>(static_cast<size_t>(size_), fallback), Shape{size_})->plain;
  }

 private:
  Layer& layer_;
  const int64_t size_;
  size_t index_ = 0;
};

void import_batch_norm(Layer& layer) {
  const auto rank = layer.rank(0);
  const auto axis = axis_of(layer, "axis", -1);
  if (!rank || *rank < 2 || !axis) return layer.unsupported("several axes, or an input of unknown rank");
  const bool last = *axis == static_cast<int64_t>(*rank) - 1;
  if (!last && *axis != 1) return layer.unsupported(fmt::format("axis {}", *axis));
  Weights weights(layer, layer.size(0, *axis));
  const ValueId scale = weights.next(layer.flag("scale", true), 1, "gamma"), shift = weights.next(layer.flag("center", true), 0, "beta");
  const ValueId mean = weights.next(true, 0, "the moving mean"), variance = weights.next(true, 1, "the moving variance");
  if (layer.failed()) return;
  const ValuePtr x = layer.as_float(layer.value(0));
  const bool first = last && *rank > 2;
  const ValueId image = first ? layer.scope().first(*x) : layer.scope().plain(*x);
  const ValueId result =
      layer.b().add(Op::kBatchNormalization, {image, scale, shift, mean, variance}, {{"epsilon", layer.number("epsilon", 1e-3)}});
  layer.keep_mask();
  first ? layer.out_first(result) : layer.out(result);
}

void import_layer_norm(Layer& layer) {
  const auto axis = axis_of(layer, "axis", -1);
  const auto rank = layer.rank(0);
  if (!rank || !axis || *axis != static_cast<int64_t>(*rank) - 1) return layer.unsupported("other axes than the last");
  if (layer.flag("rms_scaling")) return layer.unsupported("rms_scaling");
  const bool rms = layer.class_name() == "RMSNormalization";
  Weights weights(layer, layer.size(0, -1));
  const ValueId scale = weights.next(rms || layer.flag("scale", true), 1, "gamma");
  const ValueId shift = rms ? kNone : weights.next(layer.flag("center", true), 0, "beta");
  const ValueId x = layer.scope().plain(*layer.as_float(layer.value(0)));
  const graph::Attributes attributes{{"axis", int64_t{-1}}, {"epsilon", layer.number("epsilon", rms ? 1e-6 : 1e-3)}};
  if (rms) return layer.out(layer.b().add(Op::kRMSNormalization, {x, scale}, attributes));  // where the mask ends in Keras
  layer.keep_mask();
  layer.out(layer.b().add(Op::kLayerNormalization, {x, scale, shift}, attributes));
}

void import_group_norm(Layer& layer) {
  layer.keep_mask();
  const auto axis = axis_of(layer, "axis", -1);
  const auto rank = layer.rank(0);
  if (!rank || *rank < 3 || !axis || *axis != static_cast<int64_t>(*rank) - 1)
    return layer.unsupported("other axes than the last of an image");
  const int64_t channels = layer.size(0, -1), groups = layer.integer("groups", 32) == -1 ? channels : layer.integer("groups", 32);
  if (groups < 1 || channels % groups != 0) return layer.corrupt("groups that do not divide the channels");
  Weights weights(layer, channels);
  const ValueId scale = weights.next(layer.flag("scale", true), 1, "gamma"), shift = weights.next(layer.flag("center", true), 0, "beta");
  const ValueId x = layer.scope().first(*layer.as_float(layer.value(0)));
  layer.out_first(
      layer.b().add(Op::kGroupNormalization, {x, scale, shift}, {{"num_groups", groups}, {"epsilon", layer.number("epsilon", 1e-3)}}));
}

void import_unit_norm(Layer& layer) {
  layer.keep_mask();
  const auto axis = axis_of(layer, "axis", -1);
  if (!axis) return layer.unsupported("several axes");
  graph::Builder& b = layer.b();
  const ValueId x = layer.scope().plain(*layer.as_float(layer.value(0)));
  const ValueId squares = b.add(Op::kReduceSum, {b.add(Op::kMul, {x, x})}, {{"axes", List{*axis}}, {"keepdims", int64_t{1}}});
  const ValueId length = b.add(Op::kSqrt, {b.add(Op::kMax, {squares, b.number(DType::kFloat32, 1e-12)})});
  layer.out(b.add(Op::kDiv, {x, length}));
}

/// Numbers of a setting: one, a list, or lists in lists, as NumPy's arrays are written.
bool append_numbers(Json value, std::vector<float>& numbers, int depth = 0) {
  if (const auto number = value.number()) {
    numbers.push_back(static_cast<float>(*number));
    return true;
  }
  if (value.is_object()) return append_numbers(value["config"]["value"], numbers, depth + 1);
  if (!value.is_array() || depth > 8) return false;
  for (const Json& each : value.items())
    if (!append_numbers(each, numbers, depth + 1)) return false;
  return true;
}

/// One number, or one for each channel.
ValuePtr scale_of(Layer& layer, std::string_view key, double fallback) {
  if (!layer.is_set(key)) return layer.number_of(fallback);
  std::vector<float> numbers;
  if (!append_numbers(layer.setting(key), numbers) || numbers.empty()) {
    layer.unsupported(fmt::format("'{}' is neither a number nor a list of numbers", key));
    return layer.number_of(fallback);
  }
  if (numbers.size() == 1) return layer.number_of(numbers[0]);
  if (static_cast<int64_t>(numbers.size()) != layer.size(0, -1)) layer.unsupported(fmt::format("'{}' has {} numbers", key, numbers.size()));
  return layer.floats(numbers, Shape{static_cast<int64_t>(numbers.size())});
}

void import_rescaling(Layer& layer) {
  layer.keep_mask();
  ValuePtr x = layer.binary("Mul", layer.as_float(layer.value(0)), scale_of(layer, "scale", 1));
  if (layer.is_set("offset") && layer.setting("offset").number() != 0.0) x = layer.binary("AddV2", x, scale_of(layer, "offset", 0));
  layer.out(x);
}

/// (x - mean) / max(sqrt(variance), 1e-7), or its inverse. The statistics are settings, or weights.
void import_normalization(Layer& layer) {
  layer.keep_mask();
  const List axes = layer.is_set("axis") ? layer.all_integers("axis") : List{};
  const auto rank = static_cast<int64_t>(layer.rank(0).value_or(0));
  const bool scalar = axes.empty();
  if (!scalar && (axes.size() != 1 || (axes[0] != -1 && axes[0] != rank - 1))) return layer.unsupported("other axes than the last");
  ValuePtr mean, spread;
  const auto spread_of = [](float variance) { return std::max(std::sqrt(variance), 1e-7F); };
  if (layer.is_set("mean")) {
    std::vector<float> variances;
    if (!append_numbers(layer.setting("variance"), variances)) return layer.corrupt("has a mean and no variance");
    for (float& each : variances) each = spread_of(each);
    mean = scale_of(layer, "mean", 0);
    spread = variances.size() == 1 ? layer.number_of(variances[0]) : layer.floats(variances, Shape{static_cast<int64_t>(variances.size())});
    if (variances.size() != 1 && static_cast<int64_t>(variances.size()) != layer.size(0, -1))
      return layer.unsupported("a variance of another size than the input");
  } else {
    const int64_t size = scalar ? 1 : layer.size(0, -1);
    const auto statistic = [&](size_t index, std::string_view what) {
      return scalar ? layer.constant_weight(index, {}, what) : layer.constant_weight(index, {size}, what);
    };
    const graph::ConstantPtr means = statistic(0, "the mean"), variances = statistic(1, "the variance");
    if (layer.failed()) return;
    if (means->dtype != DType::kFloat32 || variances->dtype != DType::kFloat32) return layer.unsupported("statistics that are not f32");
    const auto values = variances->span<float>(), centres = means->span<float>();
    std::vector<float> spreads;
    for (const float each : values) spreads.push_back(spread_of(each));
    const Shape shape = scalar ? Shape{} : Shape{size};
    mean = layer.floats({centres.begin(), centres.end()}, shape);
    spread = layer.floats(spreads, shape);
  }
  const ValuePtr x = layer.as_float(layer.value(0));
  if (layer.flag("invert")) return layer.out(layer.binary("AddV2", mean, layer.binary("Mul", x, spread)));
  layer.out(layer.binary("RealDiv", layer.binary("Sub", x, mean), spread));
}

constexpr LayerRow kNorms[] = {
    {"BatchNormalization", import_batch_norm}, {"GroupNormalization", import_group_norm}, {"LayerNormalization", import_layer_norm},
    {"Normalization", import_normalization},   {"RMSNormalization", import_layer_norm},   {"Rescaling", import_rescaling},
    {"UnitNormalization", import_unit_norm},
};

}  // namespace

std::span<const LayerRow> norm_layers() { return kNorms; }

}  // namespace serin::formats::keras
