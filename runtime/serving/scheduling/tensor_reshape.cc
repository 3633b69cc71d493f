#include "runtime/serving/scheduling/tensor_reshape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace serin::serving {
namespace {

bool is_open(int64_t dim) { return dim < 0; }

/// The elements between open sizes: as many in front of the first, between it and the second, and so on. Empty where they are more than 64 bits count.
std::vector<int64_t> products(std::span<const int64_t> dims) {
  std::vector<int64_t> products = {1};
  for (const int64_t dim : dims) {
    if (is_open(dim))
      products.push_back(1);
    else if (__builtin_mul_overflow(products.back(), dim, &products.back()))
      return {};
  }
  return products;
}

Shape mapped(const Shape& shape, const std::vector<int64_t>& from, const std::vector<int64_t>& to, bool batched) {
  if (shape.rank() != from.size() + (batched ? 1 : 0)) return shape;
  Shape result;
  if (batched) result.push_back(shape[0]);
  size_t at = 0;
  const auto next_open = [&] {
    while (!is_open(from[at])) ++at;
    return shape[at++ + (batched ? 1 : 0)];
  };
  for (const int64_t dim : to) result.push_back(is_open(dim) ? next_open() : dim);
  return result;
}

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

Result<TensorReshape> TensorReshape::of(const std::string& name, std::vector<int64_t> outside, std::vector<int64_t> inside) {
  const auto is_size = [](int64_t dim) { return dim == -1 || dim > 0; };
  const bool fits = Shape::fits(outside.size() + 1) && Shape::fits(inside.size() + 1);  // with the batch
  const auto products_outside = products(outside), products_inside = products(inside);
  if (fits && std::ranges::all_of(outside, is_size) && std::ranges::all_of(inside, is_size) && !products_outside.empty() &&
      products_outside == products_inside)
    return TensorReshape{std::move(outside), std::move(inside)};
  return Error{Code::kInvalidArgument,
               fmt::format("'{}': reshape from dims [{}] to [{}]: both have the same elements between the same open sizes", name,
                           fmt::join(outside, ","), fmt::join(inside, ","))};
}

Shape TensorReshape::inward(const Shape& shape, bool batched) const { return mapped(shape, outside, inside, batched); }

Shape TensorReshape::outward(const Shape& shape, bool batched) const { return mapped(shape, inside, outside, batched); }

bool TensorReshapes::any() const {
  const auto is_set = [](const auto& reshape) { return reshape.has_value(); };
  return std::ranges::any_of(inputs, is_set) || std::ranges::any_of(outputs, is_set) || !chosen.empty();
}

std::shared_ptr<Scheduler> reshaping_over(std::shared_ptr<Scheduler> below, TensorReshapes reshapes) {
  return std::make_shared<ReshapingScheduler>(std::move(below), std::move(reshapes));
}

}  // namespace serin::serving
