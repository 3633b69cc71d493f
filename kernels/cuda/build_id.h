// build_id.h: Identifies the build of the kernels, because measurements of one build do not apply to another.
#pragma once

#include <string>

namespace serin::kernels::cuda {

/// The build id of the library or program with these kernels, written by the linker (--build-id): 40 hexadecimal digits, or "unknown"
/// without one.
std::string build_id();

}  // namespace serin::kernels::cuda
