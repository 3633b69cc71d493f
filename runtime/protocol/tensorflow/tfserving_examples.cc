#include "runtime/protocol/tensorflow/tfserving_examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/float16.h"
#include "runtime/protocol/tensor/request_builder.h"
#include "runtime/protocol/tensor/tensor_names.h"

namespace serin::protocol {
namespace {

constexpr std::array<std::string_view, 3> kMethodNames = {"predict", "classify", "regress"};

/// The output of that name, or the only one of that kind.
template <class Kind>
const TensorSpec* find_output(const Signature& signature, std::string_view name, const Kind& kind) {
  const TensorSpec* only = nullptr;
  size_t count = 0;
  for (const TensorSpec& spec : signature.outputs) {
    if (!kind(spec.dtype)) continue;
    if (spec.name == name) return &spec;
    only = &spec;
    ++count;
  }
  return count == 1 ? only : nullptr;
}

Status check_shape(TfMethod method, std::string_view name, const Shape& shape) {
  const bool classify = method == TfMethod::kClassify;
  if (shape.rank() == 1 || (shape.rank() == 2 && (classify || shape[1] == 1 || shape[1] < 0))) return {};
  return invalid(fmt::format("output '{}' has shape {}, {} takes {}: use predict", name, shape.str(), tf_method_name(method),
                             classify ? "[rows, classes]" : "[rows] or [rows, 1]"));
}

}  // namespace

std::string_view tf_method_name(TfMethod method) { return kMethodNames[static_cast<size_t>(method)]; }

bool is_standard_tf_name(std::string_view name, TfMethod method) {
  return name.empty() || name == kTfSignature || name == fmt::format("tensorflow/serving/{}", tf_method_name(method));
}

Error no_tf_signature(std::string_view name, std::string_view names) {
  return {Code::kInvalidArgument,
          fmt::format("Serving signature name: \"{}\" not found in signature def; there is \"{}\"", name.substr(0, 256), names)};
}

FindTfSignature only_tf_signature(const Signature& signature, TfMethod method) {
  return [&signature, method](std::string_view name) -> Result<const Signature*> {
    const std::string_view own = signature.name.empty() ? kTfSignature : std::string_view(signature.name);
    if (name != own && !is_standard_tf_name(name, method)) return no_tf_signature(name, own);
    SERIN_CHECK(check_tf_method(signature, method));
    return &signature;
  };
}

Status check_tf_method(const Signature& signature, TfMethod method) {
  if (method == TfMethod::kPredict || signature.method.empty() || signature.method == "tensorflow/serving/predict") return {};
  const std::string wanted = fmt::format("tensorflow/serving/{}", tf_method_name(method));
  if (signature.method == wanted) return {};
  return invalid(fmt::format("Expected {} signature method_name to be {}. Was: {}",
                             method == TfMethod::kClassify ? "classification" : "regression", wanted, signature.method));
}

bool parses_examples(const Signature& signature) { return signature.inputs.size() == 1 && signature.inputs.front().examples; }

Result<std::vector<size_t>> scored_outputs(TfMethod method, const Signature& signature) {
  const std::string_view usual = method == TfMethod::kClassify ? "scores" : "outputs";
  const TensorSpec* scores = find_output(signature, usual, is_float);
  if (!scores)
    return invalid(fmt::format("{} has no output of floats that '{}' could mean (the only one, or '{}'); it has {}: use predict",
                               signature.model, tf_method_name(method), usual, list_names(signature.outputs)));
  if (scores->ranked) SERIN_CHECK(check_shape(method, scores->name, scores->shape));
  const auto place = [&](const TensorSpec* spec) { return static_cast<size_t>(spec - signature.outputs.data()); };
  std::vector<size_t> outputs{place(scores)};
  if (method != TfMethod::kClassify) return outputs;
  const TensorSpec* labels = find_output(signature, "classes", [](DType dtype) { return dtype == DType::kString; });
  if (labels) outputs.push_back(place(labels));
  return outputs;
}

Error too_much_context(const RequestLimits& limits) {
  return {Code::kTooLarge, fmt::format("the context's texts, once for each example, are over the limit of {} bytes", limits.tensor_bytes)};
}

std::vector<int64_t> example_dims(const TensorSpec& spec, int64_t rows, int64_t values) {
  std::vector<int64_t> dims(spec.shape.begin(), spec.shape.end());
  if (!spec.ranked) return {rows, values};
  if (dims.empty()) return {rows};  // which the signature refuses
  dims.front() = rows;
  const auto open = std::ranges::find_if(dims, [](int64_t dim) { return dim < 0; });
  if (open == dims.end()) return dims;
  int64_t others = 1;
  for (auto dim = dims.begin() + 1; dim != dims.end(); ++dim) others *= std::max<int64_t>(1, dim == open ? 1 : *dim);
  *open = std::max<int64_t>(1, values / std::max<int64_t>(1, others));
  std::ranges::replace_if(dims, [](int64_t dim) { return dim < 0; }, 1);  // of several open ones the first takes it all
  return dims;
}

TensorView row_of(const TensorView& tensor, int64_t row) {
  TensorView part{tensor.dtype, Shape(tensor.shape.dims().subspan(1)), nullptr};
  const int64_t first = row * part.elements();
  part.data = tensor.dtype == DType::kString ? static_cast<void*>(tensor.as<std::string>() + first)
                                             : tensor.as<std::byte>() + static_cast<size_t>(first) * dtype_size(tensor.dtype);
  return part;
}

double Scores::score(int64_t row, int64_t index) const {
  const int64_t at = row * classes + index;
  switch (values->dtype) {
    case DType::kFloat64: return values->as<const double>()[at];
    case DType::kFloat16: return kernels::to_float(values->as<const kernels::Half>()[at]);
    case DType::kBFloat16: return kernels::to_float(values->as<const kernels::BFloat16>()[at]);
    default: return values->as<const float>()[at];
  }
}

std::string_view Scores::label(int64_t row, int64_t index) const {
  return labels ? std::string_view(labels->as<const std::string>()[row * classes + index]) : std::string_view();
}

Result<Scores> read_scores(TfMethod method, std::span<const NamedTensor> outputs) {
  const NamedTensor& scored = outputs.front();
  const Shape& shape = scored.tensor.shape;
  SERIN_CHECK(check_shape(method, scored.name, shape));
  Scores scores{shape[0], shape.rank() == 2 ? shape[1] : 1, &scored.tensor, nullptr};
  if (outputs.size() == 1) return scores;
  const NamedTensor& labels = outputs[1];
  if (labels.tensor.shape != shape)
    return invalid(fmt::format("output '{}' has shape {}, but the scores of '{}' have {}: use predict", labels.name,
                               labels.tensor.shape.str(), scored.name, shape.str()));
  scores.labels = &labels.tensor;
  return scores;
}

}  // namespace serin::protocol
