// math_operators.cc: lists the operators of this family that are read: functions of single elements, bits, windows, transforms, random
// numbers.

#include "runtime/formats/onnx/operands.h"
#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {
namespace {

using graph::Op;

/// The seed as it is, or one that differs from node to node: two sources of noise in a model must not be the same noise.
void add_seed(NodeImport& node, graph::Attributes& attributes) {
  uint32_t hash = 2166136261;  // FNV-1a
  for (const char c : node.name()) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  attributes.emplace("seed", node.has("seed") ? node.number("seed", 0) : static_cast<double>(hash));
}

/// Attributes that the row names, a dtype and a seed.
void import_random(NodeImport& node, Op op) {
  graph::Attributes attributes = node.copied_attributes();
  if ((op == Op::kRandomNormal || op == Op::kRandomUniform) && !attributes.contains("shape")) node.corrupt("attribute 'shape' is missing");
  add_dtype(node, "dtype", attributes);
  add_seed(node, attributes);
  node.emit(op, node.inputs(), std::move(attributes));
}

void import_eye_like(NodeImport& node, Op op) {
  graph::Attributes attributes = node.copied_attributes();
  add_dtype(node, "dtype", attributes);
  node.emit(op, node.inputs(), std::move(attributes));
}

/// Windows and the Mel filter bank name their result's type differently.
void import_window(NodeImport& node, Op op) {
  graph::Attributes attributes = node.copied_attributes();
  add_dtype(node, "output_datatype", attributes);
  if (auto dtype = attributes.extract("output_datatype")) attributes.emplace("dtype", std::move(dtype.mapped()));
  node.emit(op, node.inputs(), std::move(attributes));
}

/// The axis was an attribute, 1 where absent, before opset 20, and is an operand since.
void import_dft(NodeImport& node, Op op) {
  std::vector<graph::ValueId> operands = {node.input(0), node.input(1), node.input(2)};
  if (node.opset() < 20) {
    if (operands[2] != graph::kNone) node.corrupt("has 3 inputs, at most 2 are allowed before opset 20");
    const int64_t axis = node.integer("axis", 1);
    operands[2] = node.step_constant("axis", graph::make_constant(DType::kInt64, Shape{}, &axis));
  }
  node.emit(op, std::move(operands), node.copied_attributes());
}

void import_einsum(NodeImport& node, Op op) {
  if (!node.has("equation")) node.corrupt("attribute 'equation' is missing");
  node.emit(op, node.inputs(), node.copied_attributes());
}

constexpr OperatorRow kMathOperators[] = {
    {"Acos", 7, 1, 1, 1, import_plain, Op::kAcos},
    {"Acosh", 9, 1, 1, 1, import_plain, Op::kAcosh},
    {"Asin", 7, 1, 1, 1, import_plain, Op::kAsin},
    {"Asinh", 9, 1, 1, 1, import_plain, Op::kAsinh},
    {"Atan", 7, 1, 1, 1, import_plain, Op::kAtan},
    {"Atanh", 9, 1, 1, 1, import_plain, Op::kAtanh},
    {"Bernoulli", 15, 1, 1, 1, import_random, Op::kBernoulli},
    {"BitShift", 11, 2, 2, 1, import_plain, Op::kBitShift, "direction"},
    {"BitwiseAnd", 18, 2, 2, 1, import_plain, Op::kBitwiseAnd},
    {"BitwiseNot", 18, 1, 1, 1, import_plain, Op::kBitwiseNot},
    {"BitwiseOr", 18, 2, 2, 1, import_plain, Op::kBitwiseOr},
    {"BitwiseXor", 18, 2, 2, 1, import_plain, Op::kBitwiseXor},
    {"BlackmanWindow", 17, 1, 1, 1, import_window, Op::kBlackmanWindow, "periodic"},
    {"Celu", 12, 1, 1, 1, import_plain, Op::kCelu, "alpha"},
    {"Cosh", 9, 1, 1, 1, import_plain, Op::kCosh},
    {"CumProd", 26, 2, 2, 1, import_plain, Op::kCumProd, "exclusive reverse"},
    {"DFT", 17, 1, 3, 1, import_dft, Op::kDFT, "inverse onesided"},
    {"Det", 11, 1, 1, 1, import_plain, Op::kDet},
    {"Einsum", 12, 1, -1, 1, import_einsum, Op::kEinsum, "equation"},
    {"EyeLike", 9, 1, 1, 1, import_eye_like, Op::kEyeLike, "k"},
    {"HammingWindow", 17, 1, 1, 1, import_window, Op::kHammingWindow, "periodic"},
    {"HannWindow", 17, 1, 1, 1, import_window, Op::kHannWindow, "periodic"},
    {"MelWeightMatrix", 17, 5, 5, 1, import_window, Op::kMelWeightMatrix},
    {"Mish", 18, 1, 1, 1, import_plain, Op::kMish},
    {"Multinomial", 7, 1, 1, 1, import_random, Op::kMultinomial, "sample_size"},
    {"PRelu", 1, 2, 2, 1, import_plain, Op::kPRelu},
    {"RandomNormal", 1, 0, 0, 1, import_random, Op::kRandomNormal, "mean scale shape"},
    {"RandomNormalLike", 1, 1, 1, 1, import_random, Op::kRandomNormalLike, "mean scale"},
    {"RandomUniform", 1, 0, 0, 1, import_random, Op::kRandomUniform, "high low shape"},
    {"RandomUniformLike", 1, 1, 1, 1, import_random, Op::kRandomUniformLike, "high low"},
    {"STFT", 17, 2, 4, 1, import_plain, Op::kSTFT, "onesided"},
    {"Selu", 1, 1, 1, 1, import_plain, Op::kSelu, "alpha gamma"},
    {"Shrink", 9, 1, 1, 1, import_plain, Op::kShrink, "bias lambd"},
    {"Sinh", 9, 1, 1, 1, import_plain, Op::kSinh},
    {"Softsign", 1, 1, 1, 1, import_plain, Op::kSoftsign},
    {"Tan", 7, 1, 1, 1, import_plain, Op::kTan},
    {"ThresholdedRelu", 10, 1, 1, 1, import_plain, Op::kThresholdedRelu, "alpha"},
};

}  // namespace

OperatorFamily math_operators() { return {"", kMathOperators}; }

}  // namespace serin::formats::onnx
