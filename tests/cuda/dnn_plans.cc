// dnn_plans.cc: what cuDNN offers for the convolutions of well-known networks, asked on a machine without a GPU: the properties of an H200 come from here, and its
// heuristics answer for it. Nothing is executed. A line for each: name, layout, type, plans offered, plans left out as imprecise, the first that is not.
//
// The library's runtime fusion needs a driver even so; what is compiled into it does not, and of that these plans are.

#include <cudnn_frontend.h>
#include <stdio.h>

#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/nvidia/conv_graph.h"

namespace serin::kernels::cuda {

namespace {

constexpr std::string_view kDevice =
    R"({"cudaDeviceId":0,"deviceVer":900,"driverVer":13000,"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
    R"("multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,)"
    R"("maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,)"
    R"("smClockRateKHz":1980000,"memClockRateKHz":3201000,"l2CacheSize":62914560,"totalGlobalMem":150754820096,"deviceName":"NVIDIA H200"})";

struct Layer {
  const char* name;
  int64_t channels, size, filters, window, stride, group;  ///< images of size x size
  UnaryFn activation;
  bool residual;
};

constexpr Layer kLayers[] = {
    {"resnet stem", 3, 224, 64, 7, 2, 1, UnaryFn::kRelu, false},
    {"resnet 3x3", 64, 56, 64, 3, 1, 1, UnaryFn::kRelu, false},
    {"resnet 1x1 with residual", 64, 56, 256, 1, 1, 1, UnaryFn::kRelu, true},
    {"resnet last 1x1 with residual", 512, 7, 2048, 1, 1, 1, UnaryFn::kRelu, true},
    {"mobilenet 1x1 alone", 16, 112, 64, 1, 1, 1, UnaryFn::kIdentity, false},
    {"mobilenet 1x1 with residual", 24, 56, 24, 1, 1, 1, UnaryFn::kIdentity, true},
    {"mobilenet squeezed", 40, 1, 10, 1, 1, 1, UnaryFn::kRelu, false},
    {"resnext 3x3 of 32 groups", 128, 56, 128, 3, 1, 32, UnaryFn::kRelu, false},
    {"vit patches", 3, 224, 768, 16, 16, 1, UnaryFn::kIdentity, false},
    {"audio, one axis", 80, 3000, 384, 3, 1, 1, UnaryFn::kIdentity, false},
};

constexpr int64_t kBatch = 8;

Shape image(bool channels_last, int64_t batch, int64_t channels, int64_t size, bool one_axis) {
  std::vector<int64_t> dims{batch};
  if (!channels_last) dims.push_back(channels);
  dims.push_back(size);
  if (!one_axis) dims.push_back(size);
  if (channels_last) dims.push_back(channels);
  return Shape(std::span<const int64_t>(dims));
}

OpDesc description(const Layer& layer, DType dtype, bool channels_last) {
  const bool one_axis = std::string_view(layer.name).ends_with("one axis");
  const size_t axes = one_axis ? 1 : 2;
  const int64_t pad = layer.stride == layer.window ? 0 : layer.window / 2;
  const int64_t y_size = (layer.size + 2 * pad - layer.window) / layer.stride + 1;
  Conv op;
  op.strides.assign(axes, layer.stride);
  op.dilations.assign(axes, 1);
  op.pads.assign(2 * axes, pad);
  op.group = layer.group;
  op.bias = true;
  op.channels_last = channels_last;
  op.epilogue = {.activation = layer.activation, .residual = layer.residual};
  const Shape y = image(channels_last, kBatch, layer.filters, y_size, one_axis);
  OpDesc desc{op,
              {{dtype, image(channels_last, kBatch, layer.channels, layer.size, one_axis)},
               {dtype, image(channels_last, layer.filters, layer.channels / layer.group, layer.window, one_axis)},
               {dtype, {layer.filters}}},
              {{dtype, y}}};
  if (layer.residual) desc.inputs.push_back({dtype, y});
  return desc;
}

void ask(const std::shared_ptr<fe::DeviceProperties>& device, const Layer& layer, DType dtype, bool channels_last) {
  const std::string what =
      std::string(layer.name) + "\t" + (channels_last ? "channels last" : "channels first") + "\t" + std::string(dtype_name(dtype));
  std::string why;
  const auto graph = conv_graph(description(layer, dtype, channels_last), /*tf32=*/false, /*residual_first=*/true, why);
  if (!graph) {
    printf("%s\trefused: %s\n", what.c_str(), why.c_str());
    return;
  }
  graph->graph().set_device_properties(device);
  if (const fe::error_t error = graph->ask_for_plans(nullptr); !error.is_good()) {
    printf("%s\trefused: %s\n", what.c_str(), error.err_msg.substr(0, error.err_msg.find('\n')).c_str());
    return;
  }
  // Building one that is left out fails with this message at once. Others need a driver; the first of them is enough.
  const int64_t plans = graph->graph().get_execution_plan_count();
  int64_t left_out = 0;
  while (left_out < plans && graph->graph().build_plan_at_index(left_out).err_msg.find("Deselecting") != std::string::npos) ++left_out;
  printf("%s\t%lld\t%lld\n", what.c_str(), static_cast<long long>(plans), static_cast<long long>(left_out));
}

}  // namespace

int ask_for_all() {
  const auto device = std::make_shared<fe::DeviceProperties>();
  if (const fe::error_t error = device->deserialize({kDevice.begin(), kDevice.end()}); !error.is_good()) {
    fprintf(stderr, "the device is not taken: %s\n", error.err_msg.c_str());
    return 1;
  }
  for (const Layer& layer : kLayers) {
    ask(device, layer, DType::kFloat32, false);
    ask(device, layer, DType::kFloat16, true);
  }
  return 0;
}

}  // namespace serin::kernels::cuda

int main() { return serin::kernels::cuda::ask_for_all(); }
