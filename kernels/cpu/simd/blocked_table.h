// blocked_table.h: All loops over channel blocks for one vector type; included by the blocked_*.cc files only.
#pragma once

#include "kernels/cpu/simd/blocked.h"
#include "kernels/cpu/simd/blocked_conv.h"
#include "kernels/cpu/simd/blocked_window.h"
#include "kernels/cpu/simd/blocked_winograd.h"

namespace serin::kernels::cpu {

template <class V>
constexpr BlockedProducts blocked_products(const char* dtype, decltype(BlockedProducts::interleave) interleave,
                                           decltype(BlockedProducts::copy) copy) {
  return {
      .dtype = dtype,
      .channels = V::kWidth / Words<V>::kOfBlock,
      .max_blocks = kMaxBlocks<V>,
      .usual_blocks = kUsualBlocks<V>,
      .tile = kWindowTile<V>,
      .point = &conv_point<V>,
      .window = &conv_window<V>,
      .interleave = interleave,
      .copy = copy,
      .winograd4 = {4, &winograd_input<V, 4>, &winograd_output<V, 4>},
      .winograd2 = {2, &winograd_input<V, 2>, &winograd_output<V, 2>},
  };
}

template <class V>
constexpr BlockedLoops blocked_table() {
  return {
      .width = V::kWidth,
      .products = blocked_products<V>("f32", &blocked_interleave<V>, &blocked_copy<V>),
      .depthwise = &blocked_depthwise<V>,
      .pool_max = &blocked_pool_max<V>,
      .pool_mean = &blocked_pool_mean<V>,
      .mean = &blocked_mean<V>,
      .scale = &blocked_scale<V>,
      .affine = &blocked_affine<V>,
      .from_plain = &blocked_from_plain<V>,
      .to_plain = &blocked_to_plain<V>,
  };
}

}  // namespace serin::kernels::cpu
