// recurrent.cc: reads the description of an RNN, GRU or LSTM, with ONNX's defaults.

#include "kernels/recurrent.h"

#include <algorithm>

namespace serin::kernels {

namespace {

using Operands = RecurrentOperands;

struct Kind {
  std::string_view op;
  int64_t gates;
  std::vector<std::string> activations;  // of one direction
};

const Kind kKinds[] = {{"RNN", 1, {"Tanh"}}, {"GRU", 3, {"Sigmoid", "Tanh"}}, {"LSTM", 4, {"Sigmoid", "Tanh", "Tanh"}}};

struct Named {
  std::string_view name;  // lower case: files differ
  RecurrentActivation fn;
  bool alpha, beta;  // takes them from the attributes; else or by default as in `fn`
};

const Named kNamed[] = {
    {"tanh", {.unary = UnaryFn::kTanh}, false, false},
    {"sigmoid", {.unary = UnaryFn::kSigmoid}, false, false},
    {"relu", {.unary = UnaryFn::kRelu}, false, false},
    {"softplus", {.unary = UnaryFn::kSoftplus}, false, false},
    {"softsign", {.kind = RecurrentActivation::Fn::kSoftsign}, false, false},
    {"affine", {.kind = RecurrentActivation::Fn::kAffine, .alpha = 1}, true, true},
    {"leakyrelu", {.unary = UnaryFn::kLeakyRelu, .alpha = 0.01}, true, false},
    {"thresholdedrelu", {.kind = RecurrentActivation::Fn::kThresholdedRelu, .alpha = 1}, true, false},
    {"scaledtanh", {.kind = RecurrentActivation::Fn::kScaledTanh, .alpha = 1, .beta = 1}, true, true},
    {"hardsigmoid", {.unary = UnaryFn::kHardSigmoid, .alpha = 0.2, .beta = 0.5}, true, true},
    {"elu", {.unary = UnaryFn::kElu, .alpha = 1}, true, false},
};

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

/// alpha and beta are lists from which each activation that has such a number takes the next one.
bool read_activations(const Kind& kind, const Attributes& attributes, Recurrent& op, std::string& why) {
  std::vector<std::string> names = attributes.texts("activations");
  if (names.empty()) {
    for (int64_t d = 0; d < op.directions; ++d) names.insert(names.end(), kind.activations.begin(), kind.activations.end());
  }
  if (names.size() != kind.activations.size() * static_cast<size_t>(op.directions)) {
    why = std::to_string(names.size()) + " activations for " + std::to_string(op.directions) + " directions";
    return false;
  }
  const std::vector<double> alphas = attributes.numbers("activation_alpha"), betas = attributes.numbers("activation_beta");
  size_t alpha = 0, beta = 0;
  for (const std::string& name : names) {
    const auto* const found = std::ranges::find(kNamed, lower(name), &Named::name);
    if (found == std::end(kNamed)) {
      why = "unknown activation '" + name + "'";
      return false;
    }
    RecurrentActivation fn = found->fn;
    if (found->alpha && alpha < alphas.size()) fn.alpha = alphas[alpha++];
    if (found->beta && beta < betas.size()) fn.beta = betas[beta++];
    op.activations.push_back(fn);
  }
  return true;
}

bool read_direction(const Attributes& attributes, Recurrent& op, std::string& why) {
  const std::string direction = attributes.text("direction", "forward");
  op.directions = direction == "bidirectional" ? 2 : 1;
  op.reverse = direction == "reverse";
  if (op.directions == 2 || op.reverse || direction == "forward") return true;
  why = "unknown direction '" + direction + "'";
  return false;
}

/// Every operand that is there has the one shape that fits w, r and the attributes.
bool check_shapes(const Recurrent& op, std::span<const TensorDesc> inputs, std::string& why) {
  const Shape& x = inputs[Operands::kX].shape;
  const int64_t batch = x[op.batch_first ? 0 : 1];
  const Shape state = op.batch_first ? Shape{batch, op.directions, op.hidden} : Shape{op.directions, batch, op.hidden};
  const Shape wanted[] = {x,
                          {op.directions, op.gates * op.hidden, op.input},
                          {op.directions, op.gates * op.hidden, op.hidden},
                          {op.directions, 2 * op.gates * op.hidden},
                          {batch},
                          state,
                          state,
                          {op.directions, 3 * op.hidden}};
  constexpr std::string_view kNames[] = {"x", "w", "r", "b", "sequence_lens", "initial_h", "initial_c", "p"};
  for (size_t i = 0; i < inputs.size() && i < std::size(wanted); ++i) {
    if (inputs[i].dtype == DType::kUndefined || inputs[i].shape == wanted[i]) continue;
    why = std::string(kNames[i]) + " has shape " + inputs[i].shape.str() + ", expected " + wanted[i].str();
    return false;
  }
  return true;
}

bool check_dtypes(std::span<const TensorDesc> inputs, std::string& why) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType wanted = i == Operands::kSequenceLens ? DType::kInt32 : inputs[0].dtype;
    if (inputs[i].dtype == DType::kUndefined || inputs[i].dtype == wanted) continue;
    why = "input " + std::to_string(i) + " is " + std::string(dtype_name(inputs[i].dtype));
    return false;
  }
  return true;
}

}  // namespace

std::optional<Recurrent> recurrent_of(std::string_view op_name, const Attributes& attributes, std::span<const TensorDesc> inputs,
                                      std::string& why) {
  const auto* const kind = std::ranges::find(kKinds, op_name, &Kind::op);
  if (kind == std::end(kKinds)) {
    why = "not a recurrent operator";
    return std::nullopt;
  }
  if (inputs.size() < 3 || inputs[0].shape.rank() != 3 || inputs[1].shape.rank() != 3 || inputs[2].shape.rank() != 3) {
    why = "x, w and r must have rank 3";
    return std::nullopt;
  }
  Recurrent op;
  op.gates = kind->gates;
  op.batch_first = attributes.integer("layout", 0) != 0;
  op.hidden = inputs[Operands::kR].shape[2];
  op.input = inputs[Operands::kX].shape[2];
  op.clip = std::max(attributes.number("clip", 0), 0.0);
  op.linear_before_reset = attributes.integer("linear_before_reset", 0) != 0;
  op.input_forget = attributes.integer("input_forget", 0) != 0;
  if (!read_direction(attributes, op, why) || !read_activations(*kind, attributes, op, why)) return std::nullopt;
  if (op.hidden < 1 || attributes.integer("hidden_size", op.hidden) != op.hidden) {
    why = "hidden_size is not that of r";
    return std::nullopt;
  }
  if (!check_dtypes(inputs, why) || !check_shapes(op, inputs, why)) return std::nullopt;
  return op;
}

Fault check_sequence_lens(const RecurrentRun& run, const TensorView* lens) {
  for (int64_t b = 0; lens && b < run.batch; ++b) {
    const int64_t length = sequence_length(run, lens, b);
    if (length < 0 || length > run.steps)
      return "sequence_lens[" + std::to_string(b) + "] is " + std::to_string(length) + ", x has " + std::to_string(run.steps) + " steps";
  }
  return std::nullopt;
}

}  // namespace serin::kernels
