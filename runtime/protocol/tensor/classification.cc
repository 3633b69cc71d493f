#include "runtime/protocol/tensor/classification.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/float16.h"

namespace serin::protocol {
namespace {

float number(kernels::Half value) { return to_float(value); }
float number(kernels::BFloat16 value) { return to_float(value); }
template <class T>
T number(T value) {
  return value;
}

template <class T>
bool higher(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  }
  return a > b;
}

template <class T>
void classify_row(std::span<const T> row, int64_t k, std::span<const std::string> labels, std::vector<std::string>& texts) {
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  const auto first = [&](size_t a, size_t b) {
    if (higher(number(row[a]), number(row[b]))) return true;
    return a < b && !higher(number(row[b]), number(row[a]));
  };
  std::partial_sort(order.begin(), order.begin() + k, order.end(), first);
  for (const size_t index : std::span(order).first(static_cast<size_t>(k))) {
    texts.push_back(std::to_string(number(row[index])) + ":" + std::to_string(index));  // as Triton prints: six decimals
    if (index < labels.size()) texts.back() += ":" + labels[index];
  }
}

template <class T>
void classify_rows(const TensorView& scores, int64_t rows, int64_t k, std::span<const std::string> labels,
                   std::vector<std::string>& texts) {
  const size_t width = rows == 0 ? 0 : static_cast<size_t>(scores.elements() / rows);
  for (int64_t row = 0; row < rows; ++row)
    classify_row(scores.span<const T>().subspan(static_cast<size_t>(row) * width, width), k, labels, texts);
}

}  // namespace

Classes classify(const TensorView& scores, bool batched, int64_t k, std::span<const std::string> labels) {
  batched = batched && scores.shape.rank() > 0;
  const int64_t rows = batched ? scores.shape[0] : 1;
  k = std::min(k, rows == 0 ? 0 : scores.elements() / rows);
  Classes classes{{}, batched ? Shape{rows, k} : Shape{k}};
  const auto fill = [&]<class T>(T) { classify_rows<T>(scores, rows, k, labels, classes.texts); };
  switch (scores.dtype) {
    case DType::kBool: fill(bool{}); break;
    case DType::kInt8: fill(int8_t{}); break;
    case DType::kInt16: fill(int16_t{}); break;
    case DType::kInt32: fill(int32_t{}); break;
    case DType::kInt64: fill(int64_t{}); break;
    case DType::kUInt8: fill(uint8_t{}); break;
    case DType::kUInt16: fill(uint16_t{}); break;
    case DType::kUInt32: fill(uint32_t{}); break;
    case DType::kUInt64: fill(uint64_t{}); break;
    case DType::kFloat16: fill(kernels::Half{}); break;
    case DType::kBFloat16: fill(kernels::BFloat16{}); break;
    case DType::kFloat32: fill(float{}); break;
    case DType::kFloat64: fill(double{}); break;
    default: break;  // BYTES have no classes: a request for them is refused
  }
  return classes;
}

}  // namespace serin::protocol
