#include "runtime/serving/repository/version.h"

#include <fmt/format.h>

#include "runtime/serving/repository/model_config_tensors.h"
#include "runtime/serving/settings/model_platform.h"
#include "runtime/serving/settings/paddle_names.h"

namespace serin::serving {

Result<std::shared_ptr<Version>> Version::load(const std::string& model, const std::string& version, const std::string& path,
                                               const ModelSettings& settings, Host& host, const SchedulerFactory& schedulers) {
  const auto started = Clock::now();
  const auto metrics = std::make_shared<ModelMetrics>(host.metrics, model, version, settings.metric_tags, host.metric_options);
  const std::string name = fmt::format("model '{}' version {}", model, version);
  auto served = schedulers.load(name, path, settings, metrics);
  if (!served) return served.error().in(name);
  served->platform = platform_of(settings.config.get(), path);
  if (const Status fits = apply_declared_tensors(settings, *served); !fits) return fits.error().in(name);
  if (const Status named = read_paddle_names(path, served->signature); !named) return named.error().in(name);
  if (const Status done = schedulers.wrap(*served, settings, metrics); !done) return done.error().in(name);
  metrics->set_instances(served->instances);
  metrics->load_seconds->set(std::chrono::duration<double>(Clock::now() - started).count());
  return std::shared_ptr<Version>(new Version(model, version, metrics, *std::move(served), host));
}

Result<std::shared_ptr<Version>> Version::of_steps(const std::string& model, const std::string& version, const ModelSettings& settings,
                                                   const std::vector<std::shared_ptr<Version>>& steps, Host& host,
                                                   const SchedulerFactory& schedulers) {
  const auto metrics = std::make_shared<ModelMetrics>(host.metrics, model, version, settings.metric_tags, host.metric_options);
  const std::string name = fmt::format("model '{}' version {}", model, version);
  auto served = schedulers.of_steps(name, settings, {steps.begin(), steps.end()}, metrics);
  if (!served) return served.error().in(name);
  if (const Status done = schedulers.wrap(*served, settings, metrics); !done) return done.error().in(name);
  return std::shared_ptr<Version>(new Version(model, version, metrics, *std::move(served), host));
}

}  // namespace serin::serving
