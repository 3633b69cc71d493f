// build_id.h: which build of the kernels this is: what was measured with one says nothing of another.
#pragma once

#include <string>

namespace serin::kernels::cuda {

/// Of the library or program that holds these kernels, as the linker wrote it (--build-id): 40 hexadecimal digits. "unknown" where it did not.
std::string build_id();

}  // namespace serin::kernels::cuda
