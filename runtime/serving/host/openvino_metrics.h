// openvino_metrics.h: metrics of a version under the names of OpenVINO Model Server, in its dialect (its docs/metrics.md).
//
// They count requests for inference, not queries about models. A stream, or an infer request of its engine, corresponds to an instance
// here.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/metrics.h"
#include "runtime/serving/host/asked_by.h"

namespace serin::serving {

/// Whether it is a known metric; metrics of MediaPipe graphs are not supported.
bool is_openvino_metric(std::string_view name);
/// The metrics that are exported by default.
std::vector<std::string> usual_openvino_metrics();

class OpenvinoMetrics {
 public:
  /// `names`: the requested metrics.
  OpenvinoMetrics(metrics::Registry& registry, const std::string& model, const std::string& version, const std::vector<std::string>& names);

  void succeeded(AskedBy by, std::chrono::nanoseconds whole);
  void failed(AskedBy by);
  /// For a computed request, not a cached one.
  void computed(std::chrono::nanoseconds queue, std::chrono::nanoseconds infer);
  void set_instances(size_t count);
  /// Change of the number of requests.
  void at_work(int more);
  /// Change of the number of instances that run a batch.
  void running(int more);

 private:
  // All null unless requested. By API: gRPC, then HTTP; counters have first the Open Inference Protocol, then TensorFlow Serving.
  std::array<std::shared_ptr<metrics::Counter>, 4> succeeded_, failed_;
  std::array<std::shared_ptr<metrics::Histogram>, 2> whole_;
  std::shared_ptr<metrics::Histogram> infer_, queue_;
  std::shared_ptr<metrics::Gauge> streams_, queue_size_, current_, active_;
};

}  // namespace serin::serving
