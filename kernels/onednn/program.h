// program.h: A kernel that is a short list of oneDNN primitives.
//
// The list may begin with reorders of the operands into the main primitive's layouts, and may end with a reorder of its result. Everything
// that can be done before a run is done at preparation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/simd/simd.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace serin::kernels::onednn {

/// The place of an argument's memory in a run.
struct Place {
  enum class Kind { kInput, kOutput, kScratch, kPacked };
  Kind kind;
  size_t at = 0;  ///< index of the input or output, offset in scratch
  std::shared_ptr<const PackedWeights::Buffer> packed;

  static Place input(size_t index) { return {Kind::kInput, index, nullptr}; }
  static Place output(size_t index) { return {Kind::kOutput, index, nullptr}; }
};

struct Argument {
  int id;  ///< DNNL_ARG_...
  dnnl::memory::desc desc;
  Place place;
};

class Program {
 public:
  Program(const dnnl::engine& engine, const OpDesc& desc, PrepareContext& context);

  /// Input `input`, which is `plain`, in the layout `wanted`. It is the input itself if that is the same. A constant is packed once for the
  /// model; other inputs are reordered into scratch in each run.
  Place in_layout(size_t input, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted);
  /// The main primitive; its name is the kernel's. Adds the user scratchpad.
  void main_step(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& pd, std::vector<Argument> arguments);
  /// A place for the main primitive's result; store() reorders it into output 0 if `wanted` is not `plain`.
  Place result(const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted);
  void store(const Place& result, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted);
  /// Runs an activation on output 0 after all steps, by our own loop.
  void finish(cpu::UnaryLoop loop, const Epilogue& epilogue);

  std::unique_ptr<Kernel> kernel() &&;

  struct Step {
    dnnl::primitive primitive;
    std::vector<Argument> arguments;
  };
  struct Parts {
    dnnl::engine engine;
    std::vector<Step> steps;
    size_t scratch_bytes = 0;
    uint32_t packed_inputs = 0;
    std::string name;
    cpu::UnaryLoop activation = nullptr;  ///< run on the result; with the constants in `epilogue`
    Epilogue epilogue;
  };

 private:
  Place scratch(size_t bytes);
  void reorder(const dnnl::memory::desc& from, Place source, const dnnl::memory::desc& to, Place target);

  const OpDesc& desc_;
  PrepareContext& context_;
  Parts parts_;
};

/// Strides of a dense row-major tensor: the layout of all tensors between kernels.
dnnl::memory::desc plain_desc(const dnnl::memory::dims& dims);

/// State that every row of the plugin uses.
struct Library {
  dnnl::engine engine;
  const cpu::Simd& simd;  ///< from the program that loaded the plugin
};

/// Appends the epilogue's activation. False if oneDNN has none that keeps NaN: Program::finish() then runs it.
bool append_activation(dnnl::post_ops& post_ops, const Epilogue& epilogue);

/// Strict f32, scratch from the plan.
dnnl::primitive_attr make_attributes(const dnnl::post_ops& post_ops);

/// Refuses descriptions that no row of the plugin accepts, before oneDNN gets them: other dtypes, empty tensors, shapes that change.
bool is_fixed_f32(const OpDesc& desc, std::string& why);

std::unique_ptr<Kernel> prepare_conv(const Library& library, const OpDesc& desc, PrepareContext& context, std::string& why);
std::unique_ptr<Kernel> prepare_matmul(const Library& library, const OpDesc& desc, PrepareContext& context, std::string& why);

}  // namespace serin::kernels::onednn
