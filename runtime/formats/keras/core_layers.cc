// core_layers.cc: products, activations, sums of several inputs, and layers that do something during training only.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/formats/keras/layer.h"

namespace serin::formats::keras {

namespace {

/// Dropout, noise, augmentation of images: in serving the input passes.
void import_nothing(Layer& layer) {
  layer.keep_mask();
  layer.out(layer.value(0));
}

void import_dense(Layer& layer) {
  graph::Builder& b = layer.b();
  const int64_t units = layer.integer("units", 0), features = layer.size(0, -1);
  if (layer.is_set("quantization_mode")) return layer.unsupported("weights that Keras quantised");
  if (layer.is_set("lora_rank")) return layer.unsupported("LoRA: merge it before saving");
  const ValuePtr kernel = layer.weight(0, {features, units}, "the kernel");
  ValueId x = b.add(Op::kMatMul, {layer.scope().plain(*layer.as_float(layer.value(0))), kernel->plain});
  if (layer.flag("use_bias", true)) x = b.add(Op::kAdd, {x, layer.weight(1, {units}, "the bias")->plain});
  layer.keep_mask();
  layer.out(layer.activate(tf::plain_value(x), layer.setting("activation")));
}

void import_einsum_dense(Layer& layer) {
  if (layer.is_set("quantization_mode") || layer.is_set("lora_rank")) return layer.unsupported("weights that Keras quantised, or LoRA");
  graph::Builder& b = layer.b();
  const std::string path = layer.folder() + "vars/";
  auto kernel = layer.shared().weights.constant(path + "0");
  if (!kernel) return layer.b().fail(kernel.error().code, kernel.error().message);
  const ValueId weight = b.cast(b.constant(path + "0", *kernel), DType::kFloat32);
  ValueId x = b.add(Op::kEinsum, {layer.scope().plain(*layer.as_float(layer.value(0))), weight}, {{"equation", layer.text("equation")}});
  if (layer.is_set("bias_axes")) {  // stored with axes of size 1, so that it broadcasts
    auto bias = layer.shared().weights.constant(path + "1");
    if (!bias) return layer.b().fail(bias.error().code, bias.error().message);
    x = b.add(Op::kAdd, {x, b.cast(b.constant(path + "1", *bias), DType::kFloat32)});
  }
  layer.out(layer.activate(tf::plain_value(x), layer.setting("activation")));
}

void import_activation(Layer& layer) {
  layer.keep_mask();
  layer.out(layer.activate(layer.as_float(layer.value(0)), layer.setting("activation")));
}

void import_relu(Layer& layer) {
  const double slope = layer.number("negative_slope", 0), threshold = layer.number("threshold", 0);
  const bool limited = layer.is_set("max_value");
  const double most = layer.number("max_value", 0);
  layer.keep_mask();
  if (threshold != 0) return layer.unsupported("a threshold");
  ValuePtr x = layer.as_float(layer.value(0));
  const auto with = [&](Op op, const graph::Attributes& attributes) {
    x = layer.map(x, [&](ValueId id) { return layer.b().add(op, {id}, graph::Attributes(attributes)); });
  };
  if (slope == 0 && limited) {
    with(Op::kClip, {{"min", 0.0}, {"max", most}});
  } else {
    slope == 0 ? with(Op::kRelu, {}) : with(Op::kLeakyRelu, {{"alpha", slope}});
    if (limited) with(Op::kClip, {{"max", most}});
  }
  layer.out(x);
}

void import_leaky_relu(Layer& layer) {
  const double slope = layer.is_set("alpha") ? layer.number("alpha", 0.3) : layer.number("negative_slope", 0.3);
  layer.keep_mask();
  layer.out(layer.map(layer.as_float(layer.value(0)), [&](ValueId id) { return layer.b().add(Op::kLeakyRelu, {id}, {{"alpha", slope}}); }));
}

void import_elu(Layer& layer) {
  const double alpha = layer.number("alpha", 1);
  layer.keep_mask();
  layer.out(layer.map(layer.as_float(layer.value(0)), [&](ValueId id) { return layer.b().add(Op::kElu, {id}, {{"alpha", alpha}}); }));
}

/// A slope for each place behind the batch; shared axes have size 1.
void import_prelu(Layer& layer) {
  const graph::Dims dims = layer.dims(0).value_or(graph::Dims{});
  const std::string path = layer.folder() + "vars/0";
  const Hdf5::Tensor* const alpha = layer.shared().weights.find(path);
  if (!alpha || alpha->shape.rank() + 1 != dims.size()) return layer.corrupt(fmt::format("weight '{}' does not fit its input", path));
  for (size_t axis = 0; axis < alpha->shape.rank(); ++axis)
    if (alpha->shape[axis] != 1 && dims[axis + 1].value() != alpha->shape[axis])
      return layer.corrupt(fmt::format("weight '{}' does not fit its input", path));
  auto constant = layer.shared().weights.constant(path);
  if (!constant) return layer.b().fail(constant.error().code, constant.error().message);
  layer.keep_mask();
  const ValueId slope = layer.b().cast(layer.b().constant(path, *constant), DType::kFloat32);
  layer.out(layer.b().add(Op::kPRelu, {layer.scope().plain(*layer.as_float(layer.value(0))), slope}));
}

void import_softmax(Layer& layer) {
  if (layer.inputs() > 1 || layer.input(0).mask) return layer.unsupported("a mask");
  const List axes = layer.is_set("axis") ? layer.all_integers("axis") : List{-1};
  if (axes.size() != 1) return layer.unsupported("several axes");
  layer.out(layer.b().add(Op::kSoftmax, {layer.scope().plain(*layer.as_float(layer.value(0)))}, {{"axis", axes[0]}}));
}

/// Inputs of one rank, which broadcast.
bool same_rank(Layer& layer) {
  for (size_t i = 1; i < layer.inputs(); ++i)
    if (layer.rank(i) != layer.rank(0)) {
      if (!layer.failed()) layer.unsupported("inputs of several ranks");
      return false;
    }
  return layer.inputs() > 0;
}

void import_merge(Layer& layer) {
  if (!same_rank(layer)) return;
  const std::string& name = layer.class_name();
  const std::string_view node = name == "Multiply"   ? "Mul"
                                : name == "Subtract" ? "Sub"
                                : name == "Maximum"  ? "Maximum"
                                : name == "Minimum"  ? "Minimum"
                                                     : "AddV2";
  if (name == "Subtract" && layer.inputs() != 2) return layer.corrupt("subtracts other than two inputs");
  ValuePtr sum = layer.value(0);
  for (size_t i = 1; i < layer.inputs(); ++i) sum = layer.binary(node, sum, layer.value(i));
  if (name == "Average") sum = layer.binary("Mul", layer.as_float(sum), layer.number_of(1.0 / static_cast<double>(layer.inputs())));
  ValuePtr mask = layer.input(0).mask;  // what counts in any input counts, if all of them say so
  for (size_t i = 1; i < layer.inputs(); ++i) {
    const ValuePtr& other = layer.input(i).mask;
    if (mask != other) mask = mask && other ? layer.op("LogicalOr", {mask, other}) : nullptr;
  }
  layer.set_mask(mask);
  layer.out(sum);
}

/// The mask of [batch, steps, features] side by side, or one behind the other. An input without a mask counts everywhere.
ValuePtr joined_mask(Layer& layer, int64_t axis) {
  size_t masks = 0;
  for (size_t i = 0; i < layer.inputs(); ++i) masks += layer.input(i).mask ? 1 : 0;
  if (masks == 0) return nullptr;
  const bool features = axis == -1 || axis == 2, steps = axis == 1 || axis == -2;
  for (size_t i = 0; i < layer.inputs(); ++i)
    if (layer.rank(i) != 3 || !(features || steps))
      return layer.unsupported("a mask for other inputs than [batch, steps, features]"), nullptr;
  graph::Builder& b = layer.b();
  std::vector<ValueId> parts;
  for (size_t i = 0; i < layer.inputs(); ++i) {
    if (const ValuePtr& mask = layer.input(i).mask) {
      parts.push_back(layer.scope().plain(*mask));
      continue;
    }
    if (features) return nullptr;  // each step counts in one of the inputs
    const ValueId shape = b.slice(b.add(Op::kShape, {layer.plain(i)}), 0, 0, 2);
    parts.push_back(b.add(Op::kExpand, {b.number(DType::kBool, 1), shape}));
  }
  ValueId joined = parts[0];
  if (!features) joined = b.add(Op::kConcat, parts, {{"axis", int64_t{1}}});
  for (size_t i = 1; features && i < parts.size(); ++i)
    if (parts[i] != joined) joined = b.add(Op::kOr, {joined, parts[i]});
  return tf::plain_value(joined);
}

void import_concatenate(Layer& layer) {
  const int64_t axis = layer.integer("axis", -1);
  std::vector<ValuePtr> operands;
  operands.reserve(layer.inputs());
  for (size_t i = 0; i < layer.inputs(); ++i) operands.push_back(layer.value(i));
  if (operands.empty()) return layer.corrupt("joins nothing");
  layer.set_mask(joined_mask(layer, axis));
  operands.push_back(tf::plain_value(layer.b().constant(graph::make_scalar(DType::kInt64, static_cast<double>(axis)))));
  layer.out(layer.op("ConcatV2", std::move(operands)));
}

/// Products of vectors along one axis of both inputs.
void import_dot(Layer& layer) {
  graph::Builder& b = layer.b();
  const auto axes = layer.integers("axes", 2, -1);
  const auto rank = layer.rank(0);
  if (layer.inputs() != 2 || !rank || layer.rank(1) != rank || (*rank != 2 && *rank != 3))
    return layer.unsupported("inputs of these ranks");
  const auto at = [&](int64_t axis) { return axis < 0 ? axis + static_cast<int64_t>(*rank) : axis; };
  const auto unit = [&](size_t i) {  // vectors of length 1, if the settings say so
    const ValueId vectors = layer.scope().plain(*layer.as_float(layer.value(i)));
    if (!layer.flag("normalize")) return vectors;
    const ValueId squares =
        b.add(Op::kReduceSum, {b.add(Op::kMul, {vectors, vectors})}, {{"axes", List{at(axes[i])}}, {"keepdims", int64_t{1}}});
    return b.add(Op::kDiv, {vectors, b.add(Op::kSqrt, {b.add(Op::kMax, {squares, b.number(DType::kFloat32, 1e-12)})})});
  };
  const ValueId x = unit(0), y = unit(1);
  if (*rank == 2) {
    if (at(axes[0]) != 1 || at(axes[1]) != 1) return layer.unsupported("other axes than 1");
    return layer.out(b.add(Op::kReduceSum, {b.add(Op::kMul, {x, y})}, {{"axes", List{1}}, {"keepdims", int64_t{1}}}));
  }
  const ValueId a = at(axes[0]) == 2 ? x : b.transpose(x, {0, 2, 1}), c = at(axes[1]) == 1 ? y : b.transpose(y, {0, 2, 1});
  if (at(axes[0]) < 1 || at(axes[1]) < 1) return layer.unsupported("the axis of the batch");
  layer.out(b.add(Op::kMatMul, {a, c}));
}

void import_embedding(Layer& layer) {
  graph::Builder& b = layer.b();
  if (layer.is_set("quantization_mode") || layer.is_set("lora_rank")) return layer.unsupported("weights that Keras quantised, or LoRA");
  const ValuePtr table = layer.weight(0, {layer.integer("input_dim", 0), layer.integer("output_dim", 0)}, "the table");
  const ValueId ids = layer.plain(0);
  const DType dtype = b.dtype(ids);
  const ValueId whole = dtype == DType::kInt32 || dtype == DType::kInt64 ? ids : b.cast(ids, DType::kInt32);
  if (layer.flag("mask_zero")) layer.set_mask(tf::plain_value(b.add(Op::kNot, {b.add(Op::kEqual, {whole, b.number(b.dtype(whole), 0)})})));
  layer.out(b.add(Op::kGather, {table->plain, whole}, {{"axis", int64_t{0}}}));
}

/// Steps whose features all have that value do not count, and are zeros.
void import_masking(Layer& layer) {
  graph::Builder& b = layer.b();
  if (layer.rank(0) != 3) return layer.unsupported("an input that is not [batch, steps, features]");
  const ValueId x = layer.scope().plain(*layer.as_float(layer.value(0)));
  const ValueId differs =
      b.cast(b.add(Op::kNot, {b.add(Op::kEqual, {x, b.number(DType::kFloat32, layer.number("mask_value", 0))})}), DType::kFloat32);
  const ValueId counts = b.add(Op::kReduceMax, {differs}, {{"axes", List{2}}, {"keepdims", int64_t{1}}});
  layer.set_mask(tf::plain_value(b.cast(b.squeeze(counts, {2}), DType::kBool)));
  layer.out(b.add(Op::kWhere, {b.cast(counts, DType::kBool), x, b.number(DType::kFloat32, 0)}));
}

/// x * gamma, of ConvNeXt.
void import_layer_scale(Layer& layer) {
  layer.out(layer.binary("Mul", layer.as_float(layer.value(0)), layer.weight(0, {layer.size(0, -1)}, "the scale")));
}

/// a + b * scale, of InceptionResNetV2.
void import_custom_scale(Layer& layer) {
  const ValuePtr scaled = layer.binary("Mul", layer.value(1), layer.number_of(layer.number("scale", 1)));
  layer.out(layer.binary("AddV2", layer.value(0), scaled));
}

void import_lambda(Layer& layer) {
  layer.unsupported(
      "is a Lambda, which is Python code in the file and is never run: write it as layers or keras.ops, or export the model as a "
      "SavedModel with "
      "model.export('FOLDER')");
}

constexpr LayerRow kCore[] = {
    {"Activation", import_activation},
    {"ActivityRegularization", import_nothing},
    {"Add", import_merge},
    {"AlphaDropout", import_nothing},
    {"Average", import_merge},
    {"Concatenate", import_concatenate},
    {"CustomScaleLayer", import_custom_scale},
    {"Dense", import_dense},
    {"Dot", import_dot},
    {"Dropout", import_nothing},
    {"ELU", import_elu},
    {"EinsumDense", import_einsum_dense},
    {"Embedding", import_embedding},
    {"GaussianDropout", import_nothing},
    {"GaussianNoise", import_nothing},
    {"Identity", import_nothing},
    {"Lambda", import_lambda},
    {"LayerScale", import_layer_scale},
    {"LeakyReLU", import_leaky_relu},
    {"Masking", import_masking},
    {"Maximum", import_merge},
    {"Minimum", import_merge},
    {"Multiply", import_merge},
    {"PReLU", import_prelu},
    {"RandomBrightness", import_nothing},
    {"RandomContrast", import_nothing},
    {"RandomFlip", import_nothing},
    {"RandomRotation", import_nothing},
    {"RandomTranslation", import_nothing},
    {"RandomZoom", import_nothing},
    {"ReLU", import_relu},
    {"Softmax", import_softmax},
    {"SpatialDropout1D", import_nothing},
    {"SpatialDropout2D", import_nothing},
    {"SpatialDropout3D", import_nothing},
    {"StochasticDepth", import_nothing},
    {"Subtract", import_merge},
};

}  // namespace

std::span<const LayerRow> core_layers() { return kCore; }

}  // namespace serin::formats::keras
