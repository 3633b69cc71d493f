// cuda_fp16.h: Types for the headers of NVIDIA's libraries, on top of the emulated runtime. cublas_api.h includes driver_types.h and cuComplex.h, too, whose guards
// are defined (CMakeLists.txt): they would define the runtime again. The rest are only names, in declarations of functions that are not called.
#pragma once

#include <cuda_runtime.h>

struct __half;
struct cuComplex;
struct cuDoubleComplex;
