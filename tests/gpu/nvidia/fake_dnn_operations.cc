#include "tests/gpu/nvidia/fake_dnn_operations.h"

#include <algorithm>
#include <cmath>

#include "tests/gpu/nvidia/fake_numbers.h"

namespace fake_dnn {

using Mode = fe::PointwiseMode_t;

void each_index(const Sizes& dims, const std::function<void(const Sizes&, size_t)>& visit) {
  Sizes index(dims.size());
  size_t all = 1;
  for (const int64_t each : dims) all *= static_cast<size_t>(each);
  for (size_t i = 0; i < all; ++i) {
    visit(index, i);
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
}

size_t size_of(fe::DataType_t type) { return type == fe::DataType_t::FLOAT ? 4 : 2; }

serin::DType dtype_of(fe::DataType_t type) {
  using serin::DType;
  return type == fe::DataType_t::FLOAT ? DType::kFloat32 : type == fe::DataType_t::HALF ? DType::kFloat16 : DType::kBFloat16;
}

double activated(const fe::graph::Pointwise_attributes& node, double x) {
  switch (node.mode) {
    case Mode::RELU_FWD: {
      const double lower = static_cast<double>(node.relu_lower_clip.value_or(0));
      const double slope = static_cast<double>(node.relu_lower_clip_slope.value_or(0));
      const double above = x > lower || x != x ? x : lower + slope * (x - lower);
      return node.relu_upper_clip ? std::min(above, static_cast<double>(*node.relu_upper_clip)) : above;
    }
    case Mode::TANH_FWD: return std::tanh(x);
    case Mode::SIGMOID_FWD: return 1 / (1 + std::exp(-x));
    case Mode::SWISH_FWD: return x / (1 + std::exp(-static_cast<double>(node.swish_beta.value_or(1)) * x));
    case Mode::GELU_FWD: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Mode::GELU_APPROX_TANH_FWD: return fake::gelu_tanh(x);
    case Mode::ADD:
    case Mode::NOT_SET: break;
  }
  return x;
}

fe::error_t check_broadcast(const Tensor& x, const Tensor& other) {
  if (other->dim.size() != x->dim.size()) return refuse("operands of an addition differ in rank");
  for (size_t i = 0; i < x->dim.size(); ++i)
    if (other->dim[i] != x->dim[i] && other->dim[i] != 1) return refuse("operands of an addition differ in size");
  return {};
}

fe::error_t check_conv(const Tensor& x, const Tensor& w, const fe::graph::Conv_fprop_attributes& conv, Sizes& dims) {
  const size_t rank = x->dim.size(), axes = rank - 2;
  if (rank < 4 || rank > 5 || w->dim.size() != rank) return refuse("a convolution of other than two or three spatial axes");
  for (const Sizes* each : {&conv.pre_padding, &conv.post_padding, &conv.stride, &conv.dilation})
    if (each->size() != axes) return refuse("a convolution without a number for each spatial axis");
  if (x->dim[1] % w->dim[1] != 0 || w->dim[0] % (x->dim[1] / w->dim[1]) != 0) return refuse("channels that are no whole number of groups");
  dims = {x->dim[0], w->dim[0]};
  for (size_t i = 0; i < axes; ++i) {
    const int64_t window = (w->dim[i + 2] - 1) * conv.dilation[i] + 1;
    dims.push_back((x->dim[i + 2] + conv.pre_padding[i] + conv.post_padding[i] - window) / conv.stride[i] + 1);
  }
  return {};
}

Values convolve(const Values& x, const Values& w, const fe::graph::Conv_fprop_attributes& conv, const Sizes& dims, bool rounds) {
  Values y(dims);
  const int64_t channels = w.dims[1], groups = x.dims[1] / channels, of_group = w.dims[0] / groups;
  each_index(dims, [&](const Sizes& index, size_t at) {
    double sum = 0;
    each_index(Sizes(w.dims.begin() + 1, w.dims.end()), [&](const Sizes& tap, size_t) {
      Sizes in{index[0], index[1] / of_group * channels + tap[0]}, weight{index[1], tap[0]};
      for (size_t i = 2; i < dims.size(); ++i) {
        in.push_back(index[i] * conv.stride[i - 2] - conv.pre_padding[i - 2] + tap[i - 1] * conv.dilation[i - 2]);
        weight.push_back(tap[i - 1]);
        if (in.back() < 0 || in.back() >= x.dims[i]) return;
      }
      sum += rounds ? fake::tf32(x(in)) * fake::tf32(w(weight)) : x(in) * w(weight);
    });
    y.at[at] = sum;
  });
  return y;
}

fe::error_t check_matmul(const Tensor& a, const Tensor& b, Sizes& dims) {
  if (a->dim.size() != 3 || b->dim.size() != 3) return refuse("a product of other than three dimensions");
  if (a->dim[2] != b->dim[1]) return refuse("a product whose operands do not fit");
  if (a->dim[0] != b->dim[0] && a->dim[0] != 1 && b->dim[0] != 1) return refuse("a product whose batches do not fit");
  dims = {std::max(a->dim[0], b->dim[0]), a->dim[1], b->dim[2]};
  return {};
}

Values multiply(const Values& a, const Values& b, const Sizes& dims) {
  Values y(dims);
  each_index(dims, [&](const Sizes& index, size_t at) {
    for (int64_t k = 0; k < a.dims[2]; ++k) y.at[at] += a({index[0], index[1], k}) * b({index[0], k, index[2]});
  });
  return y;
}

fe::error_t check_sdpa(const Tensor& q, const Tensor& k, const Tensor& v, const fe::graph::SDPA_attributes& sdpa, Sizes& dims) {
  if (q->dim.size() != 4 || k->dim.size() != 4 || v->dim.size() != 4) return refuse("attention of other than four dimensions");
  if (!sdpa.attn_scale || !sdpa.generate_stats) return refuse("attention without a scale, or without a word on its statistics");
  for (const Tensor* each : {&q, &k, &v})
    if ((*each)->stride[3] != 1 || (*each)->dim[3] % 8 != 0) return refuse("a head whose elements are apart, or no multiple of 8");
  if (q->dim[0] != k->dim[0] || k->dim[0] != v->dim[0] || q->dim[3] != k->dim[3] || k->dim[2] != v->dim[2] || k->dim[1] != v->dim[1] ||
      q->dim[1] % k->dim[1] != 0)
    return refuse("attention whose operands do not fit");
  dims = {q->dim[0], q->dim[1], q->dim[2], v->dim[3]};
  return {};
}

Values attend(const Values& q, const Values& k, const Values& v, const fe::graph::SDPA_attributes& sdpa, const Sizes& dims) {
  Values y(dims);
  const int64_t keys = k.dims[2], head = q.dims[3], of_each = q.dims[1] / k.dims[1];
  each_index({dims[0], dims[1], dims[2]}, [&](const Sizes& row, size_t at) {
    const int64_t seen = sdpa.causal_mask ? std::min(keys, row[2] + 1) : keys, h = row[1] / of_each;
    std::vector<double> scores(static_cast<size_t>(seen));
    double highest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < seen; ++j) {
      double& score = scores[static_cast<size_t>(j)];
      for (int64_t i = 0; i < head; ++i) score += q({row[0], row[1], row[2], i}) * k({row[0], h, j, i});
      score *= static_cast<double>(*sdpa.attn_scale);
      highest = std::max(highest, score);
    }
    for (double& score : scores) sum += score = std::exp(score - highest);
    for (int64_t i = 0; i < dims[3]; ++i) {
      double mean = 0;
      for (int64_t j = 0; j < seen; ++j) mean += scores[static_cast<size_t>(j)] / sum * v({row[0], h, j, i});
      y.at[at * static_cast<size_t>(dims[3]) + static_cast<size_t>(i)] = mean;
    }
  });
  return y;
}

}  // namespace fake_dnn
