// asked_by.h: what a request asks for and by which door it came, as the metrics of other servers tell requests apart.
#pragma once

#include <chrono>
#include <cstdint>

namespace serin::serving {

/// What a request of TensorFlow Serving's asks for; kInfer: it is none of those.
enum class TfApi : uint8_t { kPredict, kClassify, kRegress, kMultiInference, kInfer };

struct AskedBy {
  bool http = false;
  TfApi api = TfApi::kInfer;
};

/// As histograms of durations have it.
inline double microseconds(std::chrono::nanoseconds duration) { return static_cast<double>(duration.count()) / 1e3; }

}  // namespace serin::serving
