// version.h: one loaded version of a model, as the catalogue holds it.
//
// The APIs see its metadata and its metrics, and submit requests to it (served.h). The requests that use it share it, and it is destroyed
// after the last of them. A model with several signatures is one version for each; the catalogue holds the standard one, which knows the others.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
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

  /// The same model with the signature of that name; null: it has none of that name.
  std::shared_ptr<Version> with_signature(std::string_view name);
  /// All of them by name, this one included; of a model without signatures, only this one, as "".
  std::map<std::string, std::shared_ptr<const Version>, std::less<>> signatures() const;
  /// "serving_default, embed": for messages.
  std::string list_signatures() const;

 private:
  Version(std::string model, std::string version, std::shared_ptr<ModelMetrics> metrics, Served served, Host& host)
      : ServedModel(std::move(model), std::move(version), std::move(metrics), std::move(served)), host_(host) {}

  Status add_signatures(const std::string& path, const ModelSettings& settings, const SchedulerFactory& schedulers,
                        const std::vector<std::string>& names, const SignatureChoice& own);
  Result<std::shared_ptr<Version>> load_signature(const std::string& path, const ModelSettings& settings,
                                                  const SchedulerFactory& schedulers, const SignatureChoice& choice,
                                                  const graph::Graph& standard) const;

  Host& host_;
  std::map<std::string, std::shared_ptr<Version>, std::less<>> others_;  ///< signatures; null: another name of this one
};

}  // namespace serin::serving
