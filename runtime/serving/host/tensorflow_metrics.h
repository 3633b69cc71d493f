// tensorflow_metrics.h: metrics of a model under the names of TensorFlow Serving, in its dialect.
//
// The names are :tensorflow:serving:request_count, request_latency and runtime_latency, in microseconds
// (tensorflow_serving/servables/tensorflow/util.cc). They count for a model, whichever version answered.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/mutex.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"
#include "runtime/serving/host/asked_by.h"

namespace serin::serving {

class TensorflowMetrics {
 public:
  TensorflowMetrics(metrics::Registry& registry, const std::string& model);

  /// A request of another protocol counts as Predict.
  void succeeded(AskedBy by, std::chrono::nanoseconds whole, std::chrono::nanoseconds infer);
  void failed(Code why);

 private:
  static constexpr size_t kApis = 4;
  std::shared_ptr<metrics::Counter> count(std::string_view status);

  metrics::Registry& registry_;
  const std::string model_;
  const std::shared_ptr<metrics::Counter> succeeded_;
  std::array<std::shared_ptr<metrics::Histogram>, 2 * kApis> whole_;  // over gRPC, then over HTTP
  std::array<std::shared_ptr<metrics::Histogram>, kApis> infer_;
  Mutex mutex_;
  std::map<std::string_view, std::shared_ptr<metrics::Counter>> failed_ SERIN_GUARDED_BY(mutex_);
};

}  // namespace serin::serving
