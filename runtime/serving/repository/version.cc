#include "runtime/serving/repository/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "runtime/base/log.h"
#include "runtime/graph/same.h"
#include "runtime/serving/repository/model_config_tensors.h"
#include "runtime/serving/settings/model_platform.h"
#include "runtime/serving/settings/paddle_names.h"

namespace serin::serving {

Result<std::shared_ptr<Version>> Version::load(const std::string& model, const std::string& version, const std::string& path,
                                               const ModelSettings& settings, Host& host, const SchedulerFactory& schedulers) {
  const auto started = Clock::now();
  const auto metrics = std::make_shared<ModelMetrics>(host.metrics, model, version, settings.metric_tags, host.metric_options);
  const std::string name = fmt::format("model '{}' version {}", model, version);
  const SignatureChoice choice{settings.signatures.empty() ? "" : settings.signatures.front(), engine::make_shared_weights()};
  auto served = schedulers.load(name, path, settings, metrics, choice);
  if (!served) return served.error().in(name);
  served->platform = platform_of(settings.config.get(), path);
  if (const Status fits = apply_declared_tensors(settings, *served); !fits) return fits.error().in(name);
  if (const Status named = read_paddle_names(path, served->signature); !named) return named.error().in(name);
  if (const Status done = schedulers.wrap(*served, settings, metrics); !done) return done.error().in(name);
  const std::vector<std::string> others = std::exchange(served->other_signatures, {});
  std::shared_ptr<Version> loaded(new Version(model, version, metrics, *std::move(served), host));
  if (const Status added = loaded->add_signatures(path, settings, schedulers, others, choice); !added) return added.error().in(name);
  size_t instances = loaded->instances();
  for (const auto& [signature, other] : loaded->others_) instances += other ? other->instances() : 0;
  metrics->set_instances(instances);
  metrics->load_seconds->set(std::chrono::duration<double>(Clock::now() - started).count());
  return loaded;
}

/// The rest of those that the settings name, or of all. Of those that nobody named, one that cannot be served is left out.
Status Version::add_signatures(const std::string& path, const ModelSettings& settings, const SchedulerFactory& schedulers,
                               const std::vector<std::string>& names, const SignatureChoice& own) {
  std::vector<std::string> wanted = names;
  if (!settings.signatures.empty()) wanted.assign(settings.signatures.begin() + 1, settings.signatures.end());
  if (wanted.empty()) return {};
  engine::LoadOptions options;
  options.signature = own.name;
  options.shared = own.shared;
  SERIN_TRY(const graph::Graph standard, engine::read_model(path, options));
  for (const std::string& name : wanted) {
    auto other = load_signature(path, settings, schedulers, {name, own.shared}, standard);
    if (other) {
      if (!*other) log::info("{}: signature '{}' is another name of '{}'", signature().model, name, signature().name);
      others_.emplace(name, std::move(*other));
      continue;
    }
    if (!settings.signatures.empty()) return other.error().in(fmt::format("signature '{}'", name));
    log::warning("{}: signature '{}' is not served: {}", signature().model, name, other.error().message);
  }
  return {};
}

/// Null: it is the standard one under another name, as Keras exports it.
Result<std::shared_ptr<Version>> Version::load_signature(const std::string& path, const ModelSettings& settings,
                                                         const SchedulerFactory& schedulers, const SignatureChoice& choice,
                                                         const graph::Graph& standard) const {
  engine::LoadOptions options;
  options.signature = choice.name;
  options.shared = choice.shared;
  SERIN_TRY(const graph::Graph graph, engine::read_model(path, options));
  if (graph.signature.method == standard.signature.method && graph::same_graph(graph, standard)) return std::shared_ptr<Version>();
  ModelSettings own = settings;  // without those that speak of the standard one's tensors
  own.config = nullptr;
  own.steps = {};
  own.sequences.reset();
  own.buckets.clear();
  own.warmup_requests.clear();
  own.samples.clear();
  own.class_labels.clear();
  if (own.precision == Precision::kInt8) own.precision = Precision::kFp32;
  const auto metrics = metrics_of();
  SERIN_TRY(Served served, schedulers.load(fmt::format("{} signature '{}'", signature().model, choice.name), path, own, metrics, choice));
  served.steps = nullptr;
  served.platform = platform();
  SERIN_CHECK(schedulers.wrap(served, own, metrics));
  return std::shared_ptr<Version>(new Version(model(), version(), metrics, std::move(served), host_));
}

std::shared_ptr<Version> Version::with_signature(std::string_view name) {
  if (name == signature().name) return shared_from_this();
  const auto found = others_.find(name);
  if (found == others_.end()) return nullptr;
  return found->second ? found->second : shared_from_this();
}

std::map<std::string, std::shared_ptr<const Version>, std::less<>> Version::signatures() const {
  std::map<std::string, std::shared_ptr<const Version>, std::less<>> all = {{signature().name, shared_from_this()}};
  for (const auto& [name, other] : others_) all.emplace(name, other ? std::shared_ptr<const Version>(other) : shared_from_this());
  return all;
}

std::string Version::list_signatures() const {
  std::vector<std::string> names = {signature().name};
  for (const auto& [name, other] : others_) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
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
