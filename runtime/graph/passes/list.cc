// list.cc: the order of the passes. One list, run once; each line gives the reason for its place.

#include "runtime/graph/passes/passes.h"

namespace serin::graph {

std::vector<std::unique_ptr<Pass>> all_passes(const Evaluate& evaluate) {
  std::vector<std::unique_ptr<Pass>> list;
  const auto add = [&]<class T>(T pass) { list.push_back(std::make_unique<T>(std::move(pass))); };
  add(FoldShapes());        // first: half of an exported transformer is shape arithmetic, and every later pass is faster without it
  add(InlineIf());          // its conditions are such arithmetic; its bodies should meet all the passes below
  add(QuantiseProducts());  // quantised units before constant folding, which would make floats of their weights
  add(QuantiseUnits());     // sums and movers between them
  add(DeadCode());          // what units read before would count as a second reader
  add(QuantiseChains());    // convolutions and sums must be there
  add(QuantiseFunctions(evaluate));  // what no convolution has taken
  add(QuantiseDynamic());            // the other way to quantise, which has no units
  add(DeadCode());                   // before operators are made again, those that nobody reads
  add(QuantiseLayout());             // of all operators on bytes at once
  add(ConstantFolding(evaluate));    // weights that the file transposes or casts become plain constants, which patterns look for
  add(ConstantOperands());           // after folding: axes and bounds are known now, and patterns look for them in the attributes
  add(LowerPairedGather());          // after folding, which it asks for numbers; before identities and dead code, of which it leaves some
  add(LowerGridScatter());           // the same
  add(SoftmaxOfRows());              // before dead code, of which it leaves a Shape that would count as a second reader of the scores
  add(RemoveIdentity());  // after shapes are known, because a Reshape to the same shape is an identity; before patterns, which it would break
  add(DeadCode());        // what folding left behind would count as a second reader
  add(WidenHalves());     // after folding, which would fold only small casts; before patterns, which casts would be in the way of
  add(DeadCode());        // its casts that nobody reads
  add(FuseAttention());       // the largest of all
  add(FuseLayerNorm());       // large patterns before small ones that would take parts of them (its Add, its Mul)
  add(FuseRmsNorm());         // the same
  add(FuseGelu());            // before activations, of which it becomes one
  add(FuseGate());            // the same
  add(FuseConvBias());        // before the BatchNormalization, which may come behind the bias
  add(FuseConvBatchNorm());   // before anything moves into the Conv behind which the BatchNormalization must stand
  add(LowerConvTranspose());  // after that, which does not look through the DepthToSpace; before all else that a Conv is fused with
  add(LowerGemm());           // one kind of product for what follows
  add(FuseMatMulAdd());       // bias before residual: both are an Add
  add(CommuteTransposes());  // after biases, which products carry along; before the residual, from which the second Transpose keeps a product
  add(UnflattenRows());  // after that, which takes rows together with their Transposes; before the residual, which has more axes than rows
  add(FuseResidualAdd());       // before the activation, which comes after the sum
  add(FuseActivation());        // last: nothing can be fused behind it
  add(CommonSubexpressions());  // after all patterns, for which a second reader of a value would be in the way
  add(FuseProjections());       // after that, for products of equal nodes read the same input now; biases are inside
  add(DeadCode());              // leaves nothing that has no reader
  return list;
}

}  // namespace serin::graph
