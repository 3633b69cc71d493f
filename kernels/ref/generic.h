// generic.h: Reference kernels of operators known by name (kernels::Generic). One table for each family, in the family's file.
//
//   Prepared top_k(const GenericDesc& desc, std::string& why) {
//     const int64_t axis = desc.attributes.integer("axis", -1);
//     ...
//     return make_kernel([=](Stream&, Inputs x, Outputs y) -> Fault { ...; return kOk; });
//   }
//   const GenericRow kSelectionKernels[] = {{"TopK", top_k}, ...};
//
// A kernel reads shapes from the views of the run if they may be bounded. It may allocate memory, because these kernels are not performance
// critical.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/ref/visit.h"

namespace serin::kernels::ref {

struct GenericDesc {
  const Attributes& attributes;
  std::span<const TensorDesc> inputs;   ///< by position; dtype kUndefined: absent
  std::span<const TensorDesc> outputs;  ///< the requested ones

  bool has(size_t i) const { return i < inputs.size() && inputs[i].dtype != DType::kUndefined; }
};

struct GenericRow {
  std::string_view name;  ///< of the operator, as in runtime/graph/op.h
  Prepared (*prepare)(const GenericDesc& desc, std::string& why);
};

// The families, one or more files each.
std::span<const GenericRow> math_kernels();        // functions of single elements, bits, windows, transforms, random numbers
std::span<const GenericRow> norm_kernels();        // normalisations, losses, training steps
std::span<const GenericRow> selection_kernels();   // gathering, scattering, sorting, boxes
std::span<const GenericRow> image_kernels();       // resizing, sampling, regions, convolutions other than Conv
std::span<const GenericRow> quant_kernels();       // quantisation and narrow types
std::span<const GenericRow> recurrent_kernels();   // RNN, GRU, LSTM, attention and other transformer operators
std::span<const GenericRow> text_kernels();        // strings
std::span<const GenericRow> classifier_kernels();  // ai.onnx.ml

}  // namespace serin::kernels::ref
