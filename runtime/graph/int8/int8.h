// int8.h: a graph of f32 made to compute on bytes, as quantisers do to files ahead of time.
//
//   SERIN_TRY(Int8Choice choice, choose_int8(graph));                  // what would become bytes
//   Ranges ranges = ...;                                               // of choice.values, seen on samples (runtime/samples/calibration.h)
//   SERIN_TRY(choice, choose_int8(graph, unfit));                      // without what turned out to have no usable range
//   insert_int8(graph, choice, ranges);                                // QuantizeLinear, DequantizeLinear: the passes quantise_* do the rest
//
// Activations are u8 with one scale and zero point for each tensor, weights i8 with one scale for each output channel. Convolutions of images and all that can
// stay bytes between them have ranges known before a run; a product of rows (MatMul, Gemm) whose operand is no such bytes finds the range of each row when it
// runs, so that rows remain independent of each other and nothing needs to be known of them (ZeroQuant, https://arxiv.org/abs/2206.01861, does the same).
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

/// A convolution or product that is computed in f32 all the same.
struct KeptInFloat {
  std::string node;
  Op op = Op::kConv;
  std::string why;  ///< "its weight is computed"
};

struct Int8Choice {
  std::vector<NodeId> units;    ///< producers before readers: they read and make bytes
  std::vector<NodeId> dynamic;  ///< products that find their operand's ranges when they run
  std::vector<ValueId> values;  ///< become bytes, producers before readers
  std::vector<KeptInFloat> kept;
  size_t without_ranges = 0;  ///< of `kept`: those that would not be if ranges were known
};

/// Constants must be folded and BatchNormalization be part of its Conv. `unfit`: values that must not become bytes, and why. `ranges` false: none will be
/// known, so that only what finds its own when it runs computes on bytes.
Result<Int8Choice> choose_int8(const Graph& graph, const std::map<ValueId, std::string>& unfit = {}, bool ranges = true);

/// `ranges` has all of choice.values. Types of fresh values are not set.
void insert_int8(Graph& graph, const Int8Choice& choice, const Ranges& ranges);

/// Whether somebody quantised the graph already, or its weights; asked before the passes.
bool is_quantised(const Graph& graph);
/// Whether anything in it multiplies bytes, or weights of few bits; asked after the passes, which make such products of what stands between
/// DequantizeLinear and QuantizeLinear. Bodies count, too.
bool multiplies_bytes(const Graph& graph);

/// How bytes stand for the numbers of a range, 0 exactly among them: (byte - zero) * scale.
struct ByteScale {
  float scale = 1;
  int32_t zero = 0;
};
/// Nothing where no f32 scale does: the range is not finite, or much too wide or narrow.
std::optional<ByteScale> byte_scale(const Range& range);

}  // namespace serin::graph
