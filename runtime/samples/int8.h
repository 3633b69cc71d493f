// int8.h: `precision: int8`: a model of f32 quantised while it is loaded, by what samples show.
//
//   SERIN_TRY(const Int8Model quantised, int8_model(graph, *backend, options, {.folder = "calibration"}));
//   quantised.why    // "int8: 53 of 53 convolutions and 1 of 1 products on bytes; differs from fp32 by 0.012 (relative L2, the worst of 8 inputs of calibration)"
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/engine.h"
#include "runtime/graph/int8/int8.h"

namespace serin::samples {

/// What to see ranges on, and to compare with f32 on.
struct SampleSource {
  std::string folder;     ///< of data sets (data_sets.h); empty: made-up inputs, which show how large an error is, but no ranges
  graph::Bindings sizes;  ///< of made-up inputs
  int64_t batch = 1;
};

struct Int8Model {
  std::shared_ptr<engine::Model> model;
  std::string why;                       ///< in words, with numbers
  std::string warning;                   ///< what the user should know before relying on it; empty: nothing
  bool on_bytes = false;                 ///< whether anything was quantised, now or in the file
  double error = 0;                      ///< relative L2, of the worst sample; 0 where nothing was quantised
  std::vector<graph::KeptInFloat> kept;  ///< convolutions and products that compute in f32
};

/// A model that is quantised already stays as it is. Errors: those of Model::from_graph, kInvalidArgument for samples
/// that hold a NaN or an infinity, kUnsupported where it would have to be quantised for a device.
Result<Int8Model> int8_model(graph::Graph graph, const kernels::Backend& backend, engine::LoadOptions options, const SampleSource& source);

/// An answer that differs by more is worth a warning: quantised classifiers that keep their accuracy stay below.
inline constexpr double kWorthAWarning = 0.1;

}  // namespace serin::samples
