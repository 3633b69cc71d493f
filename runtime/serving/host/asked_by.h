// asked_by.h: records the kind of a request and the API it used, as the metrics of other servers distinguish them.
#pragma once

#include <chrono>
#include <cstdint>

namespace serin::serving {

/// The kind of a TensorFlow Serving request; kInfer: a request of another API.
enum class TfApi : uint8_t { kPredict, kClassify, kRegress, kMultiInference, kInfer };

struct AskedBy {
  bool http = false;
  TfApi api = TfApi::kInfer;
};

/// Converts a duration for histograms.
inline double microseconds(std::chrono::nanoseconds duration) { return static_cast<double>(duration.count()) / 1e3; }

}  // namespace serin::serving
