// fake_dnn_operations.h: The operations of fake_dnn.h: what each demands of its operands, and its result.
#pragma once

#include <cudnn_frontend.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"

namespace fake_dnn {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Sizes = std::vector<int64_t>;

/// A failure that is the caller's mistake; it is counted and printed.
fe::error_t refuse(std::string why);

/// Values in the order of their dimensions, whatever their layout in memory.
struct Values {
  Sizes dims;
  std::vector<double> at;

  explicit Values(Sizes of = {}) : dims(std::move(of)), at(static_cast<size_t>(count())) {}
  int64_t count() const {
    int64_t all = 1;
    for (const int64_t each : dims) all *= each;
    return all;
  }
  /// Of an index that may be outside (0) or along dimensions of one element (the only one).
  double operator()(const Sizes& index) const {
    int64_t position = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t here = dims[i] == 1 ? 0 : index[i];
      if (here < 0 || here >= dims[i]) return 0;
      position = position * dims[i] + here;
    }
    return at[static_cast<size_t>(position)];
  }
};

/// In the order of rows: `visit` gets the index and its number.
void each_index(const Sizes& dims, const std::function<void(const Sizes&, size_t)>& visit);

serin::DType dtype_of(fe::DataType_t type);
size_t size_of(fe::DataType_t type);

// Sizes of the result, or the reason why there is none.
fe::error_t check_broadcast(const Tensor& x, const Tensor& other);
fe::error_t check_conv(const Tensor& x, const Tensor& w, const fe::graph::Conv_fprop_attributes& conv, Sizes& dims);
fe::error_t check_matmul(const Tensor& a, const Tensor& b, Sizes& dims);
fe::error_t check_sdpa(const Tensor& q, const Tensor& k, const Tensor& v, const fe::graph::SDPA_attributes& sdpa, Sizes& dims);

double activated(const fe::graph::Pointwise_attributes& node, double x);
/// `rounds`: operands to TF32.
Values convolve(const Values& x, const Values& w, const fe::graph::Conv_fprop_attributes& conv, const Sizes& dims, bool rounds);
Values multiply(const Values& a, const Values& b, const Sizes& dims);
Values attend(const Values& q, const Values& k, const Values& v, const fe::graph::SDPA_attributes& sdpa, const Sizes& dims);

}  // namespace fake_dnn
