// table.h: All loops of this folder for one vector type; included by the isa_*.cc files only.
#pragma once

#include "kernels/cpu/simd/blocked.h"
#include "kernels/cpu/simd/dense.h"
#include "kernels/cpu/simd/elementwise.h"
#include "kernels/cpu/simd/gemm.h"
#include "kernels/cpu/simd/image.h"
#include "kernels/cpu/simd/nbits.h"
#include "kernels/cpu/simd/rows.h"
#include "kernels/cpu/simd/simd.h"
#include "kernels/cpu/simd/window.h"

namespace serin::kernels::cpu {

template <class V>
constexpr Simd simd_table(const BlockedLoops& blocked, const DenseLoops& dense, const ImageLoops& image) {
  return {
      .blocked = &blocked,
      .dense = &dense,
      .image = &image,
      .unary = &unary_loop_of<V>,
      .binary = &binary_loop_of<V>,
      .reduce_rows = &reduce_loop_of<V, RowsLoop>,
      .reduce_columns = &reduce_loop_of<V, ColumnsLoop>,
      .cast = &cast_loop_of<V>,
      .softmax_rows = &softmax_rows<V>,
      .softmax_columns = &softmax_columns<V>,
      .arg_columns = &arg_columns<V>,
      .log_sum_exp_rows = &log_sum_exp_rows<V>,
      .layer_norm_rows = &layer_norm_rows<V>,
      .normalize = &normalize<V>,
      .width = V::kWidth,
      .pool_max = &pool<V, ReduceFn::kMax>,
      .pool_mean = &pool<V, ReduceFn::kSum>,
      .depthwise = &depthwise<V>,
      .gather_columns = &gather_columns<V>,
      .panel_width = 2 * V::kWidth,
      .gemm_panel = &gemm_panel<V>,
      .order_for_nbits = &order_for_nbits<V>,
      .nbits_product = &nbits_product<V>,
      .nbits_block = &nbits_block<V>,
      .add_terms = &add_terms<V>,
  };
}

}  // namespace serin::kernels::cpu
