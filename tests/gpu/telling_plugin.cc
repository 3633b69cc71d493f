// telling_plugin.cc: libserin_cuda_telling.so: a plugin that opens no device and says what it was asked.

#include "kernels/cuda/plugin.h"

extern "C" __attribute__((visibility("default"))) bool serin_cuda_plugin(uint32_t, const serin::kernels::cuda::Options& options,
                                                                         serin::kernels::cuda::Opened* opened) {
  opened->note = "tactics are kept in '" + options.tactics_folder + "'";
  opened->listed.resize(1);
  return true;
}
