// int8.h: makes a graph of f32 compute on bytes, as quantisers do ahead of time with files.
//
//   SERIN_TRY(Int8Choice choice, choose_int8(graph));                  // nodes that would compute on bytes
//   Ranges ranges = ...;                                               // of choice.values, from samples (runtime/samples/calibration.h)
//   SERIN_TRY(choice, choose_int8(graph, unfit));                      // without values that have no usable range
//   insert_int8(graph, choice, ranges);                  // QuantizeLinear, DequantizeLinear; the passes quantise_* do the rest
//
// Activations are u8 with one scale and zero point for each tensor; weights are i8 with one scale for each output channel. Convolutions of
// images, and the steps between them that can stay on bytes, have ranges known before a run.
//
// A product of rows (MatMul, Gemm) whose operand is not on bytes finds the range of each row during the run. So rows stay independent of
// each other, and no samples are needed. ZeroQuant, https://arxiv.org/abs/2206.01861, does the same.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace serin::graph {

struct Range {
  float low = 0, high = 0;
};
using Ranges = std::map<ValueId, Range>;

/// A convolution or product that still computes in f32.
struct KeptInFloat {
  std::string node;
  Op op = Op::kConv;
  std::string why;  ///< "its weight is computed"
};

struct Int8Choice {
  std::vector<NodeId> units;    ///< producers before readers: they read and produce bytes
  std::vector<NodeId> dynamic;  ///< products that find their operand's ranges during the run
  std::vector<ValueId> values;  ///< values that become bytes, producers before readers
  std::vector<KeptInFloat> kept;
  size_t without_ranges = 0;  ///< those in `kept` that lack only ranges
};

/// Constants must be folded, and each BatchNormalization merged into its Conv. `unfit`: values that must not become bytes, with reasons.
/// `ranges` false: no ranges will be known, so only products that find their own during the run compute on bytes.
Result<Int8Choice> choose_int8(const Graph& graph, const std::map<ValueId, std::string>& unfit = {}, bool ranges = true);

/// `ranges` must have all of choice.values. Types of new values are not set.
void insert_int8(Graph& graph, const Int8Choice& choice, const Ranges& ranges);

/// Whether the graph, or its weights, are already quantised; call it before the passes.
bool is_quantised(const Graph& graph);
/// Whether some node multiplies bytes, or weights of few bits; call it after the passes, which create such products between
/// DequantizeLinear and QuantizeLinear. Bodies count too.
bool multiplies_bytes(const Graph& graph);

/// How bytes represent the numbers of a range, with 0 exact: (byte - zero) * scale.
struct ByteScale {
  float scale = 1;
  int32_t zero = 0;
};
/// Returns nothing if no f32 scale is suitable: the range is not finite, or much too wide or narrow.
std::optional<ByteScale> byte_scale(const Range& range);

}  // namespace serin::graph
