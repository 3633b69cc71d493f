// version.h: one loaded version of a model, as the catalogue holds it.
//
// The APIs see its metadata and its metrics, and submit requests to it (served.h). The requests that use it share it, and it is destroyed
// after the last of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serving/host/host.h"
#include "runtime/serving/scheduling/scheduler_factory.h"

namespace serin::serving {

class Version final : public ServedModel, public std::enable_shared_from_this<Version> {
 public:
  /// Reads, plans and warms a model. The error names model and version.
  static Result<std::shared_ptr<Version>> load(const std::string& model, const std::string& version, const std::string& path,
                                               const ModelSettings& settings, Host& host, const SchedulerFactory& schedulers);

  /// Makes an ensemble whose steps these versions run.
  static Result<std::shared_ptr<Version>> of_steps(const std::string& model, const std::string& version, const ModelSettings& settings,
                                                   const std::vector<std::shared_ptr<Version>>& steps, Host& host,
                                                   const SchedulerFactory& schedulers);

  Host& host() const { return host_; }

 private:
  Version(std::string model, std::string version, std::shared_ptr<ModelMetrics> metrics, Served served, Host& host)
      : ServedModel(std::move(model), std::move(version), std::move(metrics), std::move(served)), host_(host) {}

  Host& host_;
};

}  // namespace serin::serving
