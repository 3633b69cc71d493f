// device.h: One CUDA device, with the interface of kernels/device.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"

namespace serin::kernels::cuda {

/// The devices that the driver shows to this process (CUDA_VISIBLE_DEVICES, MIG), in its order. None of them is opened: no context is made.
/// One whose properties cannot be read has no name. Empty, with the reason in `why`, if the driver does not respond.
std::vector<Device::Info> list_devices(std::string& why);

/// Makes the device's context. Null, with the reason in `why`, if there is no such device or it does not respond.
std::unique_ptr<Device> open_device(int index, std::string& why);

}  // namespace serin::kernels::cuda
