// plugin.cc: libserin_cuda_emulated.so: the plugin of kernels/cuda/plugin.cc without NVIDIA's libraries, on the emulated device. `serin check --device cuda
// --cuda-plugin` with it runs whole models through the device's half of the engine on any machine.

#include "kernels/cuda/plugin.h"

#include "kernels/cuda/device.h"
#include "kernels/cuda/table.h"

extern "C" __attribute__((visibility("default"))) bool serin_cuda_plugin(uint32_t version, const serin::kernels::cuda::Options& options,
                                                                         serin::kernels::cuda::Opened* opened) {
  if (version != serin::kernels::cuda::kPluginVersion) return false;
  if (options.device == serin::kernels::cuda::Options::kList) {
    opened->listed = serin::kernels::cuda::list_devices(opened->note);
    return true;
  }
  opened->device = serin::kernels::cuda::open_device(options.device, opened->note);
  if (!opened->device) return true;
  opened->table = serin::kernels::cuda::make_table();
  opened->note = opened->device->info().name;
  return true;
}
