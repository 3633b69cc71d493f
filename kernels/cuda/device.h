// device.h: one CUDA device behind kernels/device.h.
#pragma once

#include <memory>
#include <string>

#include "kernels/device.h"

namespace serin::kernels::cuda {

/// How many the driver shows to this process (CUDA_VISIBLE_DEVICES, MIG); 0 where it does not answer.
int visible_devices();

/// Null, with the reason in `why`, where there is no such device or it does not answer.
std::unique_ptr<Device> open_device(int index, std::string& why);

}  // namespace serin::kernels::cuda
