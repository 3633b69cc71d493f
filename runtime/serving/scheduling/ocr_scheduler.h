// ocr_scheduler.h: reads the texts of a picture: a detector finds lines, a recognizer reads each (runtime/steps/pipeline/ocr.h).
//
// Both are models of this server, with their own batchers. Lines of all pages under way share the batches of the recognizer.
#pragma once

#include <map>
#include <memory>

#include "runtime/serving/host/host.h"
#include "runtime/serving/scheduling/runs_by_request.h"
#include "runtime/serving/scheduling/served.h"
#include "runtime/serving/scheduling/step_threads.h"
#include "runtime/steps/pipeline/ocr.h"

namespace serin::serving {

class OcrScheduler final : public Scheduler, public std::enable_shared_from_this<OcrScheduler> {
 public:
  /// `models`: the detector and the recognizer. Each has one input of FP32 with four axes. kInvalidArgument: one has another form.
  static Result<std::shared_ptr<OcrScheduler>> make(const steps::OcrSettings& settings, const ServedModels& models, size_t most_waiting,
                                                    Host& host, ModelMetrics& metrics);
  /// Of its clients.
  static protocol::Signature signature(const std::string& name, const steps::OcrSettings& settings);

  /// A job of one row.
  Status submit(JobPtr job) override;
  void withdraw(const JobPtr& job) override;
  int64_t retry_after_seconds() const override;
  bool idle() const override { return runs_.empty(); }
  Status usable() const override;

 private:
  class Run;
  OcrScheduler(std::shared_ptr<const steps::Ocr> ocr, std::shared_ptr<const ServedModel> detector,
               std::shared_ptr<const ServedModel> recognizer, size_t most_waiting, Host& host, ModelMetrics& metrics);

  const std::shared_ptr<const steps::Ocr> ocr_;
  const std::shared_ptr<const ServedModel> detector_, recognizer_;
  const size_t most_waiting_, most_lines_;  // lines of one page that are in the recognizer at a time
  const std::shared_ptr<StepThreads> threads_;
  const std::shared_ptr<metrics::Histogram> read_seconds_, find_seconds_;

  RunsByRequest<Run> runs_;
};

}  // namespace serin::serving
