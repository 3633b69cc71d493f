// device.h: One CUDA device, with the interface of kernels/device.h.
#pragma once

#include <memory>
#include <string>

#include "kernels/device.h"

namespace serin::kernels::cuda {

/// The number of devices that the driver shows to this process (CUDA_VISIBLE_DEVICES, MIG); 0 if it does not respond.
int visible_devices();

/// Null, with the reason in `why`, if there is no such device or it does not respond.
std::unique_ptr<Device> open_device(int index, std::string& why);

}  // namespace serin::kernels::cuda
