// int8.h: quantises a model of f32 while it is loaded (`precision: int8`), by value ranges seen on samples.
//
//   SERIN_TRY(const Int8Model quantised, int8_model(graph, *backend, options, {.folder = "calibration"}));
//   quantised.why
//     // "int8: 53 of 53 convolutions and 1 of 1 products on bytes;
//     //  differs from fp32 by 0.012 (relative L2, the worst of 8 inputs of calibration)"
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/engine.h"
#include "runtime/graph/int8/int8.h"

namespace serin::samples {

/// The inputs that ranges are taken from and that int8 is compared with f32 on.
struct SampleSource {
  std::string folder;     ///< folder of data sets (data_sets.h); empty: made-up inputs, which show the error but give no ranges
  graph::Bindings sizes;  ///< sizes of made-up inputs
  int64_t batch = 1;
};

struct Int8Model {
  std::shared_ptr<engine::Model> model;
  std::string why;                       ///< explanation with numbers
  std::string warning;                   ///< a warning for the user; empty: none
  bool on_bytes = false;                 ///< whether anything is quantised, now or already in the file
  double error = 0;                      ///< relative L2 error of the worst sample; 0 if nothing was quantised
  std::vector<graph::KeptInFloat> kept;  ///< convolutions and products that still compute in f32
};

/// A model that is already quantised stays unchanged. With LoadOptions::only_plans nothing runs: ranges are made up, and `error` is 0.
/// Errors: those of Model::from_graph, kInvalidArgument for samples that contain a NaN
/// or an infinity, kUnsupported if it would have to be quantised for a device.
Result<Int8Model> int8_model(graph::Graph graph, const kernels::Backend& backend, engine::LoadOptions options, const SampleSource& source);

/// A larger difference causes a warning: quantised classifiers that keep their accuracy stay below this value.
inline constexpr double kWorthAWarning = 0.1;

}  // namespace serin::samples
