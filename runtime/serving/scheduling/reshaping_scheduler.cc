#include "runtime/serving/scheduling/reshaping_scheduler.h"

#include <fmt/format.h>

namespace serin::serving {
namespace {

class ReshapingScheduler final : public Scheduler {
 public:
  ReshapingScheduler(std::shared_ptr<Scheduler> below, TensorReshapes reshapes)
      : below_(std::move(below)), reshapes_(std::make_shared<const TensorReshapes>(std::move(reshapes))) {}

  Status submit(JobPtr job) override {
    for (size_t i = 0; i < job->inputs.size(); ++i)
      if (const auto& reshape = reshapes_->inputs[i]) job->inputs[i].shape = reshape->inward(job->inputs[i].shape, reshapes_->batched);
    if (reshapes_->counts_rows) SERIN_CHECK(count_rows(*job));
    job->done = [reshapes = reshapes_, done = std::move(job->done)](Answer answer) mutable {
      if (answer.outputs) answer.outputs = outward(*reshapes, *answer.outputs);
      done(std::move(answer));
    };
    return below_->submit(std::move(job));
  }
  void withdraw(const JobPtr& job) override { below_->withdraw(job); }
  int64_t retry_after_seconds() const override { return below_->retry_after_seconds(); }
  bool idle() const override { return below_->idle(); }
  Status usable() const override { return below_->usable(); }

 private:
  static Status count_rows(Job& job) {
    job.rows = job.inputs.empty() ? 1 : job.inputs.front().shape[0];
    for (const TensorView& input : job.inputs)
      if (input.shape[0] != job.rows || job.rows < 1)
        return Error{Code::kInvalidArgument,
                     fmt::format("inputs, reshaped as config.pbtxt says, have {} and {} rows", job.rows, input.shape[0])};
    return {};
  }

  static Outputs outward(const TensorReshapes& reshapes, const Outputs& outputs) {
    std::vector<TensorView> tensors(outputs.tensors.begin(), outputs.tensors.end());
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!reshapes.outputs[i]) continue;
      const Shape shape = reshapes.outputs[i]->outward(tensors[i].shape, reshapes.batched);
      if (shape.checked_elements() == tensors[i].elements()) tensors[i].shape = shape;  // sizes that only a run knows may be others
    }
    if (reshapes.chosen.empty()) return Outputs::of(std::move(tensors), outputs.block);
    std::vector<TensorView> chosen;
    for (const size_t output : reshapes.chosen) chosen.push_back(tensors[output]);
    return Outputs::of(std::move(chosen), outputs.block);
  }

  const std::shared_ptr<Scheduler> below_;
  const std::shared_ptr<const TensorReshapes> reshapes_;
};

}  // namespace

std::shared_ptr<Scheduler> reshaping_over(std::shared_ptr<Scheduler> below, TensorReshapes reshapes) {
  return std::make_shared<ReshapingScheduler>(std::move(below), std::move(reshapes));
}

}  // namespace serin::serving
