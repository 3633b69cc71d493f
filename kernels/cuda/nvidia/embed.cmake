# embedded_headers.h: the headers that a kernel's text may include when it is compiled at run time (run_time.h), as they are now. The standard library's
# names lead to standard.h, which is as much of it as they use.
set(SERIN_EMBEDDED kernels/cuda/chain.h kernels/cuda/pack.h kernels/cuda/space.h kernels/cuda/thread.h kernels/float16.h kernels/functions.def kernels/functions.h kernels/functors.h)
set(names "")
set(texts "")
foreach(header IN LISTS SERIN_EMBEDDED ITEMS kernels/cuda/nvidia/standard.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${header})
  file(READ ${CMAKE_SOURCE_DIR}/${header} text)
  string(APPEND names "    \"${header}\",\n")
  string(APPEND texts "    R\"header(${text})header\",\n")
endforeach()
foreach(name algorithm bit cmath cstdint limits type_traits)
  string(APPEND names "    \"${name}\",\n")
  string(APPEND texts "    \"#include \\\"kernels/cuda/nvidia/standard.h\\\"\\n\",\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/embedded/kernels/cuda/nvidia/embedded_headers.h @ONLY CONTENT [[
// Made by kernels/cuda/nvidia/embed.cmake.
#pragma once

namespace serin::kernels::cuda {

inline constexpr const char* kEmbeddedHeaderNames[] = {
@names@};

inline constexpr const char* kEmbeddedHeaders[] = {
@texts@};

}  // namespace serin::kernels::cuda
]])
