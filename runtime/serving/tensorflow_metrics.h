// tensorflow_metrics.h: the numbers of a model under the names that TensorFlow Serving's users have dashboards on, where the server is called so:
// :tensorflow:serving:request_count, request_latency and runtime_latency, in microseconds (tensorflow_serving/servables/tensorflow/util.cc). They are of a
// model, whichever version answered.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/base/metrics.h"
#include "runtime/base/result.h"

namespace serin::serving {

/// What a request of TensorFlow Serving's asks for; others predict, too.
enum class TfApi : uint8_t { kPredict, kClassify, kRegress, kMultiInference };

/// As histograms of durations have it.
inline double microseconds(std::chrono::nanoseconds duration) { return static_cast<double>(duration.count()) / 1e3; }

class TensorflowMetrics {
 public:
  TensorflowMetrics(metrics::Registry& registry, const std::string& model);

  void succeeded(TfApi api, bool http, std::chrono::nanoseconds whole, std::chrono::nanoseconds infer);
  void failed(Code why);

 private:
  static constexpr size_t kApis = 4;
  std::shared_ptr<metrics::Counter> count(std::string_view status);

  metrics::Registry& registry_;
  const std::string model_;
  const std::shared_ptr<metrics::Counter> succeeded_;
  std::array<std::shared_ptr<metrics::Histogram>, 2 * kApis> whole_;  // over gRPC, then over HTTP
  std::array<std::shared_ptr<metrics::Histogram>, kApis> infer_;
  std::mutex mutex_;
  std::map<std::string_view, std::shared_ptr<metrics::Counter>> failed_;  // guarded by mutex_
};

}  // namespace serin::serving
