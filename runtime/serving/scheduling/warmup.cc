#include "runtime/serving/scheduling/warmup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

#include "runtime/base/log.h"
#include "runtime/protocol/tensor/raw_tensor.h"
#include "runtime/protocol/tensor/request_builder.h"

namespace serin::serving {
namespace {

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Code::kNotFound, fmt::format("{}: cannot be read", path)};
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// Numbers from -1 to 1, ones and zeros where there are none between, words. The same in every run.
void randomise(const TensorView& tensor) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> number(-1, 1);
  const auto elements = static_cast<size_t>(tensor.elements());
  if (tensor.dtype == DType::kFloat32)
    for (float& each : tensor.span<float>()) each = static_cast<float>(number(random));
  else if (tensor.dtype == DType::kFloat64)
    for (double& each : tensor.span<double>()) each = number(random);
  else if (tensor.dtype == DType::kFloat16 || tensor.dtype == DType::kBFloat16)
    for (size_t i = 0; i < elements; ++i) tensor.as<uint16_t>()[i] = random() % 2 ? (tensor.dtype == DType::kFloat16 ? 0x3c00 : 0x3f80) : 0;
  else if (tensor.dtype == DType::kString)
    for (size_t i = 0; i < elements; ++i) tensor.as<std::string>()[i] = std::to_string(random());
  else
    for (size_t i = 0; i < elements; ++i) tensor.as<std::byte>()[i * dtype_size(tensor.dtype)] = static_cast<std::byte>(random() % 2);
}

/// The first row stands for all.
void repeat_first_row(const TensorView& tensor, int64_t rows) {
  const auto row = static_cast<size_t>(tensor.elements() / rows);
  if (tensor.dtype == DType::kString) {
    for (size_t i = row; i < row * static_cast<size_t>(rows); ++i) tensor.as<std::string>()[i] = tensor.as<std::string>()[i - row];
    return;
  }
  const size_t bytes = row * dtype_size(tensor.dtype);
  for (int64_t i = 1; i < rows; ++i) std::memcpy(tensor.as<std::byte>() + static_cast<size_t>(i) * bytes, tensor.as<std::byte>(), bytes);
}

}  // namespace

std::vector<int64_t> with_rows(std::vector<int64_t> dims, const protocol::TensorSpec& spec, bool batchable, int64_t rows) {
  const bool one_short = spec.ranked && spec.shape.rank() == dims.size() + 1 && spec.shape[0] < 0;
  if (batchable || one_short) dims.insert(dims.begin(), rows);
  return dims;
}

Status fill(const Filling& filling, const TensorView& tensor, int64_t rows, const std::string& name) {
  if (tensor.dtype != DType::kString) std::memset(tensor.data, 0, tensor.bytes());
  if (filling.kind == Filling::Kind::kZero) return {};
  if (filling.kind == Filling::Kind::kRandom) {
    randomise(tensor);
    return {};
  }
  SERIN_TRY(const std::string bytes, read_file(filling.file));
  TensorView first = tensor;
  if (rows > 1) first.shape[0] = 1;
  std::string_view used = bytes;
  if (tensor.dtype != DType::kString && used.size() > first.bytes()) {  // as Triton takes it
    log::warning("{}: input '{}' takes the first {} of its {} bytes", filling.file, name, first.bytes(), used.size());
    used = used.substr(0, first.bytes());
  }
  if (auto fits = protocol::check_raw(used, first, name); !fits) return fits.error().in(filling.file);
  protocol::read_raw(used, first);
  if (rows > 1) repeat_first_row(tensor, rows);
  return {};
}

Result<JobPtr> warmup_job(const WarmupRequest& request, const protocol::Signature& signature, bool batchable) {
  const int64_t rows = batchable ? request.batch_size : 1;
  const protocol::RequestLimits limits;
  protocol::RequestBuilder builder(signature, limits);
  for (const auto& [name, input] : request.inputs) {
    SERIN_TRY(const size_t i, builder.begin_input(name));
    const protocol::TensorSpec& spec = signature.inputs[i];
    SERIN_CHECK(builder.set_datatype(i, protocol::oip_datatype(input.dtype == DType::kUndefined ? spec.dtype : input.dtype)));
    std::vector<int64_t> dims = input.dims;
    if (dims.empty() && spec.ranked) dims.assign(spec.shape.begin() + (batchable ? 1 : 0), spec.shape.end());
    SERIN_CHECK(builder.set_shape(i, with_rows(std::move(dims), spec, batchable, rows)));
  }
  SERIN_CHECK(builder.check_required_given());
  SERIN_CHECK(builder.allocate());
  for (const auto& [name, input] : request.inputs) {
    const auto found = std::ranges::find(signature.inputs, name, &protocol::TensorSpec::name);
    SERIN_CHECK(fill(input.data, builder.request.inputs[static_cast<size_t>(found - signature.inputs.begin())], rows, name));
  }
  protocol::InferRequest filled = builder.take();
  auto job = std::make_shared<Job>();
  job->inputs = std::move(filled.inputs);
  job->memory = std::move(filled.memory);
  job->texts = std::move(filled.texts);
  job->rows = rows;
  return job;
}

}  // namespace serin::serving
