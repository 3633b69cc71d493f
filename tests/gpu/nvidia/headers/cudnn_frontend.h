// cudnn_frontend.h: as much of cudnn-frontend's graphs, and of cuDNN itself, as kernels/cuda/nvidia uses, for the emulated device (fake_dnn.h). The names are the
// library's own, so that the same sources are compiled against either.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

struct cudnnContext;
using cudnnHandle_t = cudnnContext*;
enum cudnnStatus_t { CUDNN_STATUS_SUCCESS = 0, CUDNN_STATUS_BAD_PARAM = 2000, CUDNN_STATUS_ALLOC_FAILED = 4000 };
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
const char* cudnnGetErrorString(cudnnStatus_t status);
size_t cudnnGetVersion();

namespace cudnn_frontend {

struct error_t {
  std::string err_msg;
  bool good = true;
  bool is_good() const { return good; }
};

enum class DataType_t { NOT_SET, FLOAT, HALF, BFLOAT16 };
enum class HeurMode_t { A, B, FALLBACK };
enum class NumericalNote_t { TENSOR_CORE, DOWN_CONVERT_INPUTS, REDUCED_PRECISION_REDUCTION, FFT, WINOGRAD_TILE_6x6, WINOGRAD_TILE_13x13 };
enum class PointwiseMode_t { NOT_SET, ADD, RELU_FWD, TANH_FWD, SIGMOID_FWD, SWISH_FWD, GELU_FWD, GELU_APPROX_TANH_FWD };

namespace graph {

#define SERIN_FAKE_SETTER(type, name)   \
  auto& set_##name(const type& value) { \
    this->name = value;                 \
    return *this;                       \
  }

struct Tensor_attributes {
  SERIN_FAKE_SETTER(int64_t, uid)
  SERIN_FAKE_SETTER(std::vector<int64_t>, dim)
  SERIN_FAKE_SETTER(std::vector<int64_t>, stride)
  SERIN_FAKE_SETTER(bool, output)
  SERIN_FAKE_SETTER(DataType_t, data_type)

  std::optional<int64_t> uid;
  std::vector<int64_t> dim, stride;
  bool output = false, input = false;
  DataType_t data_type = DataType_t::NOT_SET;
};

struct Pointwise_attributes {
  SERIN_FAKE_SETTER(PointwiseMode_t, mode)
  SERIN_FAKE_SETTER(float, relu_lower_clip)
  SERIN_FAKE_SETTER(float, relu_upper_clip)
  SERIN_FAKE_SETTER(float, relu_lower_clip_slope)
  SERIN_FAKE_SETTER(float, swish_beta)

  PointwiseMode_t mode = PointwiseMode_t::NOT_SET;
  std::optional<float> relu_lower_clip, relu_upper_clip, relu_lower_clip_slope, swish_beta;
};

struct Conv_fprop_attributes {
  SERIN_FAKE_SETTER(std::vector<int64_t>, pre_padding)
  SERIN_FAKE_SETTER(std::vector<int64_t>, post_padding)
  SERIN_FAKE_SETTER(std::vector<int64_t>, stride)
  SERIN_FAKE_SETTER(std::vector<int64_t>, dilation)

  std::vector<int64_t> pre_padding, post_padding, stride, dilation;
};

struct Matmul_attributes {};

struct SDPA_attributes {
  SERIN_FAKE_SETTER(bool, generate_stats)
  SERIN_FAKE_SETTER(float, attn_scale)
  SERIN_FAKE_SETTER(bool, causal_mask)

  std::optional<bool> generate_stats;
  std::optional<float> attn_scale;
  bool causal_mask = false;
};

#undef SERIN_FAKE_SETTER

class Graph {
 public:
  using Tensor = std::shared_ptr<Tensor_attributes>;

  Graph();
  ~Graph();
  Graph& set_io_data_type(DataType_t type);
  Graph& set_intermediate_data_type(DataType_t type);
  Graph& set_compute_data_type(DataType_t type);

  Tensor tensor(const Tensor_attributes& attributes);
  Tensor pointwise(Tensor x, Pointwise_attributes attributes);
  Tensor pointwise(Tensor x, Tensor other, Pointwise_attributes attributes);
  Tensor conv_fprop(Tensor x, Tensor weight, Conv_fprop_attributes attributes);
  Tensor matmul(Tensor a, Tensor b, Matmul_attributes attributes);
  std::array<Tensor, 2> sdpa(Tensor q, Tensor k, Tensor v, SDPA_attributes attributes);

  // In this order; each refuses, with the reason, if the one before was not called or refused.
  error_t validate();
  error_t build_operation_graph(cudnnHandle_t handle);
  error_t build_operation_graph();
  error_t create_execution_plans(const std::vector<HeurMode_t>& modes);
  Graph& deselect_numeric_notes(const std::vector<NumericalNote_t>& notes);
  Graph& deselect_workspace_greater_than(int64_t bytes);
  error_t check_support(cudnnHandle_t handle);
  int64_t get_execution_plan_count() const;
  error_t build_plan_at_index(cudnnHandle_t handle, int64_t plan);
  error_t get_workspace_size_plan_at_index(int64_t plan, int64_t& bytes) const;
  error_t execute_plan_at_index(cudnnHandle_t handle, std::unordered_map<int64_t, void*>& pointers, void* workspace, int64_t plan) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graph

}  // namespace cudnn_frontend
