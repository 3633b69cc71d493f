// cuda_bf16.h: see cuda_fp16.h.
#pragma once

struct __nv_bfloat16;
