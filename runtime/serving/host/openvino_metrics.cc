#include "runtime/serving/host/openvino_metrics.h"

#include <algorithm>
#include <cmath>

namespace serin::serving {
namespace {

constexpr std::array<std::string_view, 7> kUsual = {
    "ovms_streams",         "ovms_current_requests",  "ovms_requests_success",          "ovms_requests_fail",
    "ovms_request_time_us", "ovms_inference_time_us", "ovms_wait_for_infer_req_time_us"};
constexpr std::array<std::string_view, 9> kOthers = {
    "ovms_infer_req_queue_size", "ovms_infer_req_active",         "ovms_current_graphs",
    "ovms_requests_accepted",    "ovms_requests_rejected",        "ovms_responses",
    "ovms_graph_error",          "ovms_graph_processing_time_us", "ovms_graph_request_latency_us"};

/// As there: 10 us, and each about the 1.8-fold of the one before, to 20 minutes.
std::vector<double> openvino_bounds() {
  std::vector<double> openvino_bounds(33);
  for (size_t i = 0; i < openvino_bounds.size(); ++i) openvino_bounds[i] = std::floor(10 * std::pow(1.8, static_cast<double>(i)));
  return openvino_bounds;
}

size_t counter_of(AskedBy by) { return (by.api == TfApi::kInfer ? 0 : 2) + (by.http ? 1 : 0); }

}  // namespace

bool is_openvino_metric(std::string_view name) {
  return std::ranges::find(kUsual, name) != kUsual.end() || std::ranges::find(kOthers, name) != kOthers.end();
}

std::vector<std::string> usual_openvino_metrics() { return {kUsual.begin(), kUsual.end()}; }

OpenvinoMetrics::OpenvinoMetrics(metrics::Registry& registry, const std::string& model, const std::string& version,
                                 const std::vector<std::string>& names) {
  const metrics::Labels labels = {{"name", model}, {"version", version}};
  const auto with = [&labels](metrics::Labels more) {
    more.insert(more.begin(), labels.begin(), labels.end());
    return more;
  };
  const std::vector<double> limits = openvino_bounds();
  const auto wanted = [&names](const char* name) { return std::ranges::find(names, name) != names.end(); };
  const auto count = [&](const char* name, const char* help, auto& counters) {
    if (!wanted(name)) return;
    for (size_t i = 0; i < counters.size(); ++i)
      counters[i] = registry.counter(name, help,
                                     with({{"api", i < 2 ? "KServe" : "TensorFlowServing"},
                                           {"interface", i % 2 == 0 ? "gRPC" : "REST"},
                                           {"method", i < 2 ? "ModelInfer" : "Predict"}}));
  };
  const auto histogram = [&](const char* name, const char* help, const metrics::Labels& more = {}) {
    return wanted(name) ? registry.histogram(name, help, with(more), limits) : nullptr;
  };
  const auto gauge = [&](const char* name, const char* help) { return wanted(name) ? registry.gauge(name, help, labels) : nullptr; };

  count("ovms_requests_success", "Number of successful requests to a model or a DAG.", succeeded_);
  count("ovms_requests_fail", "Number of failed requests to a model or a DAG.", failed_);
  for (size_t i = 0; i < whole_.size(); ++i)
    whole_[i] =
        histogram("ovms_request_time_us", "Processing time of requests to a model or a DAG.", {{"interface", i == 0 ? "gRPC" : "REST"}});
  infer_ = histogram("ovms_inference_time_us", "Inference execution time.");
  queue_ = histogram("ovms_wait_for_infer_req_time_us", "Request waiting time in the scheduling queue.");
  streams_ = gauge("ovms_streams", "Number of execution streams.");
  queue_size_ = gauge("ovms_infer_req_queue_size", "Inference request queue size (nireq).");
  active_ = gauge("ovms_infer_req_active", "Number of currently consumed inference requests from the processing queue.");
  current_ = gauge("ovms_current_requests", "Number of inference requests currently in process.");
}

void OpenvinoMetrics::succeeded(AskedBy by, std::chrono::nanoseconds whole) {
  if (const auto& counter = succeeded_[counter_of(by)]) counter->add();
  if (const auto& histogram = whole_[by.http ? 1 : 0]) histogram->observe(microseconds(whole));
}

void OpenvinoMetrics::failed(AskedBy by) {
  if (const auto& counter = failed_[counter_of(by)]) counter->add();
}

void OpenvinoMetrics::computed(std::chrono::nanoseconds queue, std::chrono::nanoseconds infer) {
  if (queue_) queue_->observe(microseconds(queue));
  if (infer_) infer_->observe(microseconds(infer));
}

void OpenvinoMetrics::set_instances(size_t count) {
  if (streams_) streams_->set(static_cast<double>(count));
  if (queue_size_) queue_size_->set(static_cast<double>(count));
}

void OpenvinoMetrics::at_work(int more) {
  if (current_) current_->add(more);
}

void OpenvinoMetrics::running(int more) {
  if (active_) active_->add(more);
}

}  // namespace serin::serving
