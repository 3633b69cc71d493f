#include "runtime/serving/scheduling/scheduler_factory.h"

#include <algorithm>

#include "runtime/serving/scheduling/caching_scheduler.h"
#include "runtime/serving/scheduling/engine_scheduler.h"
#include "runtime/serving/scheduling/ensemble_scheduler.h"
#include "runtime/serving/scheduling/ocr_scheduler.h"
#include "runtime/serving/scheduling/reshaping_scheduler.h"
#include "runtime/serving/scheduling/sequence_scheduler.h"
#include "runtime/serving/scheduling/splitting_scheduler.h"
#include "runtime/serving/scheduling/steps_scheduler.h"

namespace serin::serving {
namespace {

/// A limit that a configuration of Triton's names is one of requests, too; so is that of sequences, each of which has a place in the batch. An ensemble has its
/// limit from its steps.
void take_any_rows(Served& served, const ModelSettings& settings) {
  if (settings.config || settings.sequences) served.max_rows = served.max_batch;
  if (!served.batchable || served.max_rows <= served.max_batch) return;
  served.scheduler = std::make_shared<SplittingScheduler>(std::move(served.scheduler), served.max_batch, 2 * served.instances);
}

size_t most_waiting(const ModelSettings& settings) { return settings.queues.levels[settings.queues.standard - 1].limit; }

/// Its rows run one by one up to the model, whose batches they share.
Result<Served> with_steps(Served served, const ModelSettings& settings, Host& host, const std::shared_ptr<ModelMetrics>& metrics) {
  if (served.stateful || settings.sequences) return invalid("a model of sequences has no 'pre' and no 'post'");
  if (served.reshapes.any()) return invalid("'pre' and 'post' do not go with 'reshape' of config.pbtxt");
  const size_t side_by_side = rows_at_a_time(served.max_batch, served.instances) + static_cast<size_t>(host.pool.cores());
  const auto found = served.steps;
  const steps::StepsSettings& steps = found ? *found : settings.steps;
  const std::string signature = served.signature.name;
  SERIN_TRY(served, StepsScheduler::over(std::move(served), steps, most_waiting(settings), host, metrics));
  served.signature.name = signature;
  served.max_rows = settings.config ? served.max_batch : INT64_MAX;
  served.scheduler = std::make_shared<SplittingScheduler>(std::move(served.scheduler), 1, side_by_side);
  return served;
}

/// Reads the pages of a request side by side.
Result<Served> ocr_of(const std::string& name, const ModelSettings& settings, const ServedModels& models, Host& host,
                      const std::shared_ptr<ModelMetrics>& metrics) {
  const steps::OcrSettings& ocr = *settings.ensemble->ocr;
  SERIN_TRY(auto scheduler, OcrScheduler::make(ocr, models, most_waiting(settings), host, *metrics));
  Served served{.signature = OcrScheduler::signature(name, ocr),
                .parameters = {},
                .batchable = true,
                .platform = kEnsemblePlatform,
                .max_rows = INT64_MAX};
  served.scheduler = std::make_shared<SplittingScheduler>(std::move(scheduler), 1, 2 * static_cast<size_t>(host.pool.cores()));
  return served;
}

}  // namespace

Result<Served> SchedulerFactory::load(const std::string& name, const std::string& path, const ModelSettings& settings,
                                      const std::shared_ptr<ModelMetrics>& metrics, const SignatureChoice& choice) const {
  if (host_.admit) SERIN_CHECK(host_.admit(name, path, settings));
  SERIN_TRY(Served served, EngineScheduler::load(name, path, settings, host_, metrics, choice));
  if (!settings.steps.given && !settings.config && !settings.sequences) served.steps = StepsScheduler::find_steps(name, path, served);
  return served;
}

Result<Served> SchedulerFactory::of_steps(const std::string& name, const ModelSettings& settings, const ServedModels& steps,
                                          const std::shared_ptr<ModelMetrics>& metrics) const {
  if (settings.ensemble->ocr) return ocr_of(name, settings, steps, host_, metrics);
  SERIN_TRY(EnsemblePlan plan, EnsemblePlan::make(name, *settings.ensemble, steps));
  Served served{.signature = plan.signature,
                .parameters = {},
                .batchable = plan.batchable,
                .max_batch = plan.batchable ? std::min(plan.max_batch, settings.max_batch) : 1,
                .platform = kEnsemblePlatform,
                .stateful = std::ranges::any_of(steps, [](const auto& step) { return step->stateful(); }),
                .max_rows = settings.config ? std::min(plan.max_rows, settings.max_batch) : plan.max_rows};
  served.scheduler = EnsembleScheduler::make(std::move(plan), host_.tracer, metrics);
  return served;
}

/// Kept responses are those of the model, in its own shapes; sequences fill in inputs that clients do not see.
Status SchedulerFactory::wrap(Served& served, const ModelSettings& settings, const std::shared_ptr<ModelMetrics>& metrics) const {
  if (served.steps || settings.steps.any()) {
    SERIN_TRY(served, with_steps(std::move(served), settings, host_, metrics));
  } else if (!settings.ensemble) {
    take_any_rows(served, settings);
  }
  served.timeout_is_deadline = settings.queues.timeout_is_deadline;
  if (settings.response_cache) SERIN_CHECK(keep_responses(served, settings, metrics));
  if (served.reshapes.any()) served.scheduler = reshaping_over(std::move(served.scheduler), served.reshapes);
  if (settings.sequences) {
    SERIN_TRY(served, SequenceScheduler::over(std::move(served), settings, host_.pool));
  }
  return {};
}

Status SchedulerFactory::keep_responses(Served& served, const ModelSettings& settings, const std::shared_ptr<ModelMetrics>& metrics) const {
  if (served.stateful || settings.sequences)
    return Error{Code::kInvalidArgument, "response_cache: answers within a sequence depend on what came before, and are not kept"};
  if (!responses_) return Error{Code::kInvalidArgument, "response_cache: the server keeps no responses: --response-cache-bytes is 0"};
  metrics->count_cache(host_.metrics, host_.metric_options);
  served.scheduler = std::make_shared<CachingScheduler>(served.scheduler, responses_, most_waiting(settings), host_, metrics);
  return {};
}

}  // namespace serin::serving
