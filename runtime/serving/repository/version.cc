#include "runtime/serving/repository/version.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/serving/repository/model_config.h"
#include "runtime/serving/scheduling/caching_scheduler.h"
#include "runtime/serving/scheduling/engine_scheduler.h"
#include "runtime/serving/scheduling/ensemble_scheduler.h"
#include "runtime/serving/scheduling/sequence_scheduler.h"
#include "runtime/serving/scheduling/splitting_scheduler.h"
#include "runtime/serving/settings/paddle_names.h"

namespace serin::serving {

Result<std::shared_ptr<Version>> Version::load(const std::string& model, const std::string& version, const std::string& path,
                                               const ModelSettings& settings, Host& host) {
  const auto started = Clock::now();
  std::shared_ptr<Version> loaded(new Version(model, version, host));
  loaded->metrics_ = std::make_shared<ModelMetrics>(host.metrics, model, version, settings.metric_tags, host.metric_options);
  const std::string name = fmt::format("model '{}' version {}", model, version);
  auto served = EngineScheduler::load(name, path, settings, host, loaded->metrics_);
  if (!served) return served.error().in(name);
  if (const Status fits = apply_declared_tensors(settings, *served); !fits) return fits.error().in(name);
  if (const Status named = read_paddle_names(path, served->signature); !named) return named.error().in(name);
  loaded->served_ = std::move(*served);
  loaded->take_any_rows(settings);
  if (auto done = loaded->put_in_front(settings); !done) return done.error().in(name);
  loaded->metrics_->set_instances(loaded->instances());
  loaded->metrics_->load_seconds->set(std::chrono::duration<double>(Clock::now() - started).count());
  return loaded;
}

Result<std::shared_ptr<Version>> Version::of_steps(const std::string& model, const std::string& version, const ModelSettings& settings,
                                                   const std::vector<std::shared_ptr<Version>>& steps, Host& host) {
  const std::string name = fmt::format("model '{}' version {}", model, version);
  auto plan = EnsemblePlan::make(name, *settings.ensemble, steps);
  if (!plan) return plan.error().in(name);
  std::shared_ptr<Version> made(new Version(model, version, host));
  made->metrics_ = std::make_shared<ModelMetrics>(host.metrics, model, version, settings.metric_tags, host.metric_options);
  made->served_ = {.signature = plan->signature,
                   .parameters = {},
                   .batchable = plan->batchable,
                   .max_batch = plan->batchable ? std::min(plan->max_batch, settings.max_batch) : 1,
                   .platform = kEnsemblePlatform,
                   .stateful = std::ranges::any_of(steps, [](const auto& step) { return step->served_.stateful; }),
                   .max_rows = settings.config ? std::min(plan->max_rows, settings.max_batch) : plan->max_rows};
  made->served_.scheduler = EnsembleScheduler::make(std::move(*plan), host, made->metrics_);
  if (auto done = made->put_in_front(settings); !done) return done.error().in(name);
  return made;
}

/// A limit that a configuration of Triton's names is one of requests, too; so is that of sequences, each of which has a place in the batch.
void Version::take_any_rows(const ModelSettings& settings) {
  const auto is_text = [](const protocol::TensorSpec& spec) { return spec.dtype == DType::kString; };  // has no plan, and so no batch
  const bool texts = std::ranges::any_of(served_.signature.inputs, is_text) || std::ranges::any_of(served_.signature.outputs, is_text);
  if (settings.config || settings.sequences || texts) served_.max_rows = served_.max_batch;
  if (!batchable() || max_rows() <= max_batch()) return;
  served_.scheduler = std::make_shared<SplittingScheduler>(std::move(served_.scheduler), max_batch(), 2 * instances());
}

/// What is between the doors and the engine. Kept responses are those of the model, in its own shapes; sequences fill in inputs that clients do not see.
Status Version::put_in_front(const ModelSettings& settings) {
  served_.timeout_is_deadline = settings.queues.timeout_is_deadline;
  if (settings.response_cache) SERIN_CHECK(keep_responses(settings));
  if (served_.reshapes.any()) served_.scheduler = reshaping_over(std::move(served_.scheduler), served_.reshapes);
  if (settings.sequences) {
    SERIN_TRY(served_, SequenceScheduler::over(std::move(served_), settings, host_));
  }
  return {};
}

Status Version::keep_responses(const ModelSettings& settings) {
  if (served_.stateful || settings.sequences)
    return Error{Code::kInvalidArgument, "response_cache: answers within a sequence depend on what came before, and are not kept"};
  if (!host_.responses) return Error{Code::kInvalidArgument, "response_cache: the server keeps no responses: --response-cache-bytes is 0"};
  metrics_->count_cache(host_.metrics, host_.metric_options);
  served_.scheduler =
      std::make_shared<CachingScheduler>(served_.scheduler, settings.queues.levels[settings.queues.standard - 1].limit, host_, metrics_);
  return {};
}

Status Version::count_rows(Job& job) const {
  const auto& [model, inputs, outputs] = served_.signature;
  job.rows = job.inputs.empty() ? 1 : job.inputs.front().shape[0];
  for (size_t i = 1; i < job.inputs.size(); ++i) {
    if (job.inputs[i].shape[0] != job.rows)
      return Error{Code::kInvalidArgument, fmt::format("{}: inputs '{}' and '{}' disagree on the batch: {} and {} rows", model,
                                                       inputs[0].name, inputs[i].name, job.rows, job.inputs[i].shape[0])};
  }
  if (job.rows < 1) return Error{Code::kInvalidArgument, fmt::format("{}: the request has a batch of 0 rows", model)};
  if (job.rows > max_rows())
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: inference request batch-size must be <= {}, the request has {}", model, max_rows(), job.rows)};
  return {};
}

Status Version::submit(const JobPtr& job) {
  if (batchable() && !served_.reshapes.counts_rows) SERIN_CHECK(count_rows(*job));
  if (!job->shadow) job->pending.begin(metrics_->pending);
  Status taken = served_.scheduler->submit(job);
  if (!taken) job->pending.end();
  return taken;
}

}  // namespace serin::serving
