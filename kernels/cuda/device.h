// device.h: one CUDA device behind kernels/device.h.
#pragma once

#include <memory>
#include <string>

#include "kernels/device.h"

namespace serin::kernels::cuda {

/// Null, with the reason in `why`, where there is no such device or it does not answer.
std::unique_ptr<Device> open_device(int index, std::string& why);

}  // namespace serin::kernels::cuda
