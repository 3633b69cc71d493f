// openvino_metrics.h: the numbers of a version under the names that OpenVINO Model Server's users have dashboards and autoscalers on, where the server is
// called so (its docs/metrics.md). Requests are those for inference: what is asked about models is not counted. A stream, and a request of its engine's, is an
// instance here.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/metrics.h"
#include "runtime/serving/host/asked_by.h"

namespace serin::serving {

/// One that can be asked for; of graphs of MediaPipe's there is none to see.
bool is_openvino_metric(std::string_view name);
/// Those that there are without being asked for.
std::vector<std::string> usual_openvino_metrics();

class OpenvinoMetrics {
 public:
  /// `names`: those that are wanted.
  OpenvinoMetrics(metrics::Registry& registry, const std::string& model, const std::string& version, const std::vector<std::string>& names);

  void succeeded(AskedBy by, std::chrono::nanoseconds whole);
  void failed(AskedBy by);
  /// Of a request that was computed, not known already.
  void computed(std::chrono::nanoseconds queue, std::chrono::nanoseconds infer);
  void set_instances(size_t count);
  /// How many more requests there are than before.
  void at_work(int more);
  /// How many more instances run a batch than before.
  void running(int more);

 private:
  // All null where they are not wanted. By door: gRPC, then HTTP; of counters first those of the Open Inference Protocol, then those of TensorFlow Serving's.
  std::array<std::shared_ptr<metrics::Counter>, 4> succeeded_, failed_;
  std::array<std::shared_ptr<metrics::Histogram>, 2> whole_;
  std::shared_ptr<metrics::Histogram> infer_, queue_;
  std::shared_ptr<metrics::Gauge> streams_, queue_size_, current_, active_;
};

}  // namespace serin::serving
