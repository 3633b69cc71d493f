#include "runtime/serving/host/tensorflow_metrics.h"

#include <vector>

namespace serin::serving {
namespace {

constexpr std::array<std::string_view, 4> kOverGrpc = {"Predict", "Classify", "Regress", "MultiInference"};
constexpr std::array<std::string_view, 3> kOverHttp = {"predict", "classify", "regress"};

/// As there: 10 us, and each the 1.8-fold of the one before, to 20 minutes.
std::vector<double> tensorflow_bounds() {
  std::vector<double> tensorflow_bounds = {10};
  while (tensorflow_bounds.size() < 33) tensorflow_bounds.push_back(tensorflow_bounds.back() * 1.8);
  return tensorflow_bounds;
}

/// As TensorFlow spells its codes, which are those of gRPC.
std::string_view status_name(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kCorrupt: return "INVALID_ARGUMENT";
    case Code::kNotFound: return "NOT_FOUND";
    case Code::kAlreadyExists: return "ALREADY_EXISTS";
    case Code::kFailedPrecondition: return "FAILED_PRECONDITION";
    case Code::kConflict: return "ABORTED";
    case Code::kOutOfRange: return "OUT_OF_RANGE";
    case Code::kTooLarge:
    case Code::kOverloaded: return "RESOURCE_EXHAUSTED";
    case Code::kUnsupported: return "UNIMPLEMENTED";
    case Code::kUnavailable: return "UNAVAILABLE";
    case Code::kDeadlineExceeded: return "DEADLINE_EXCEEDED";
    case Code::kCancelled: return "CANCELLED";
    case Code::kPermissionDenied: return "PERMISSION_DENIED";
    case Code::kIo:
    case Code::kInternal: return "INTERNAL";
  }
  return "UNKNOWN";
}

}  // namespace

TensorflowMetrics::TensorflowMetrics(metrics::Registry& registry, const std::string& model)
    : registry_(registry), model_(model), succeeded_(count("OK")) {
  const std::vector<double> limits = tensorflow_bounds();
  const auto histogram = [&](const char* name, const char* help, std::string_view api, const char* key, const char* value) {
    return registry.histogram(name, help, {{"model_name", model}, {"API", std::string(api)}, {key, value}}, limits);
  };
  for (size_t api = 0; api < kApis; ++api) {
    const auto request = [&](std::string_view name, const char* entrypoint) {
      return histogram(":tensorflow:serving:request_latency", "Wall time of a request, in microseconds", name, "entrypoint", entrypoint);
    };
    whole_[api] = request(kOverGrpc[api], "GRPC");
    if (api < kOverHttp.size()) whole_[kApis + api] = request(kOverHttp[api], "REST");
    infer_[api] = histogram(":tensorflow:serving:runtime_latency", "Wall time of the model's run, in microseconds", kOverGrpc[api],
                            "runtime", "SERIN");
  }
}

std::shared_ptr<metrics::Counter> TensorflowMetrics::count(std::string_view status) {
  return registry_.counter(":tensorflow:serving:request_count", "Requests, by what became of them",
                           {{"model_name", model_}, {"status", std::string(status)}});
}

void TensorflowMetrics::succeeded(AskedBy by, std::chrono::nanoseconds whole, std::chrono::nanoseconds infer) {
  succeeded_->add();
  const auto which = static_cast<size_t>(by.api == TfApi::kInfer ? TfApi::kPredict : by.api);
  whole_[by.http ? kApis + which : which]->observe(microseconds(whole));
  infer_[which]->observe(microseconds(infer));
}

void TensorflowMetrics::failed(Code why) {
  const MutexLock lock(mutex_);
  auto& counter = failed_[status_name(why)];
  if (!counter) counter = count(status_name(why));
  counter->add();
}

}  // namespace serin::serving
