// instance.cc: gather rows, run, hand out rows. A single job that fills its bucket is passed by pointer: nothing is copied on the way in.

#include "runtime/serving/scheduling/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/serving/scheduling/rows.h"

namespace serin::serving {
namespace {

/// What two dense tensors have in common, which begin at the same corner: copied from one to the other.
void copy_overlap(const std::byte* from, std::span<const int64_t> from_dims, std::byte* to, std::span<const int64_t> to_dims,
                  size_t element) {
  if (from_dims.empty()) {
    std::memcpy(to, from, element);
    return;
  }
  size_t from_step = element, to_step = element;
  for (size_t axis = 1; axis < from_dims.size(); ++axis) {
    from_step *= static_cast<size_t>(from_dims[axis]);
    to_step *= static_cast<size_t>(to_dims[axis]);
  }
  const auto count = static_cast<size_t>(std::min(from_dims[0], to_dims[0]));
  const auto inner_from = from_dims.subspan(1), inner_to = to_dims.subspan(1);
  if (std::ranges::equal(inner_from, inner_to)) {
    std::memcpy(to, from, count * from_step);
    return;
  }
  for (size_t i = 0; i < count; ++i) copy_overlap(from + i * from_step, inner_from, to + i * to_step, inner_to, element);
}

/// Copies every job's rows behind each other and clears what is left, so that padding holds zeros and no former client's data.
TensorView gather(std::span<const std::shared_ptr<Job>> jobs, size_t input, const engine::TensorInfo& info, const TensorView& staging,
                  bool by_rows) {
  std::byte* const to = staging.as<std::byte>();
  size_t done = 0;
  for (const auto& job : jobs) {
    const TensorView& own = job->inputs[input];
    Shape place = info.shape;
    if (by_rows) place[0] = job->rows;
    const size_t bytes = TensorView{info.dtype, place, nullptr}.bytes();
    if (own.shape != place) std::memset(to + done, 0, bytes);
    copy_overlap(own.as<const std::byte>(), own.shape.dims(), to + done, place.dims(), dtype_size(info.dtype));
    done += bytes;
  }
  std::memset(to + done, 0, staging.bytes() - done);
  return staging;
}

/// An input of one job as the engine takes it. Shares the job's memory and keeps the job, because a result may be a view of it.
engine::Value value_of(const std::shared_ptr<Job>& job, const TensorView& view) {
  auto tensor = std::make_shared<graph::Constant>();
  tensor->dtype = view.dtype;
  tensor->shape = view.shape;
  if (view.dtype == DType::kString)
    tensor->strings.assign(view.as<const std::string>(), view.as<const std::string>() + view.elements());
  else
    tensor->resident = std::shared_ptr<const std::byte>(job, view.as<const std::byte>());
  return engine::Value::of(std::move(tensor));
}

/// An input of several jobs, one after the other, up to `rows` rows. What is left repeats the last row: the model has to take that one anyhow, where it may refuse
/// zeros or empty texts.
engine::Value join_rows(std::span<const std::shared_ptr<Job>> jobs, size_t input, int64_t rows) {
  const TensorView& first = jobs.front()->inputs[input];
  Shape shape = first.shape;
  shape[0] = rows;
  const engine::FreshTensor fresh = engine::fresh_tensor(first.dtype, shape);
  int64_t done = 0;
  const auto append = [&](const TensorView& from) {
    const TensorView to = rows_of(fresh.view, done, from.shape[0]);
    done += from.shape[0];
    if (from.dtype == DType::kString)
      std::ranges::copy(from.span<const std::string>(), to.as<std::string>());
    else if (from.bytes() > 0)
      std::memcpy(to.data, from.data, from.bytes());
  };
  for (const auto& job : jobs) append(job->inputs[input]);
  const TensorView& last = jobs.back()->inputs[input];
  while (done < rows) append(rows_of(last, last.shape[0] - 1, 1));
  return engine::Value::of(fresh.tensor);
}

}  // namespace

Status Instance::Block::allocate() {
  const size_t bytes = result_bytes(tensors);
  if (bytes > kMostResultBytes)
    return Error{Code::kTooLarge, fmt::format("the results would take {} bytes; at most {}", bytes, kMostResultBytes)};
  if (memory.size() < bytes) memory = AlignedBuffer(bytes);
  size_t offset = 0;
  for (TensorView& tensor : tensors) {
    tensor.data = memory.data() + offset;
    offset += AlignedBuffer::rounded_up(tensor.bytes());
  }
  return {};
}

void Instance::Block::clear() {
  tensors.clear();
  if (memory.size() > kMostRecycledBytes) memory = AlignedBuffer();
}

/// A model without a plan, whose results have the sizes that the run gave them. Only a request that runs alone stops when nobody waits for it any more.
Instance::RunResult Instance::interpret(std::span<const std::shared_ptr<Job>> jobs) {
  const auto started = Clock::now();
  RunResult result;
  int64_t rows = 0;
  for (const auto& job : jobs) rows += job->rows;
  const bool by_rows = model_->batchable().yes;
  result.bucket_rows = by_rows ? bucket_rows(rows, options_.max_batch) : 1;
  const bool whole = jobs.size() == 1 && (!by_rows || rows == result.bucket_rows);
  std::vector<engine::Value> inputs;
  for (size_t i = 0; i < model_->inputs().size(); ++i)
    inputs.push_back(whole ? value_of(jobs.front(), jobs.front()->inputs[i]) : join_rows(jobs, i, result.bucket_rows));
  const auto gathered = Clock::now();
  result.input = gathered - started;
  auto results = model_->run(inputs, jobs.size() == 1 ? &jobs.front()->given_up() : nullptr);
  const auto computed = Clock::now();
  result.infer = computed - gathered;
  if (!results) {
    result.status = results.error();
    return result;
  }
  auto held = std::make_shared<std::vector<engine::Value>>(std::move(*results));
  std::vector<TensorView> all;
  for (size_t i = 0; i < held->size(); ++i) {
    const engine::Value& value = (*held)[i];
    if (!value.tensor) {
      result.status =
          Error{Code::kUnsupported, "output '" + model_->outputs()[i].name + "' is " + describe(value) + ", which cannot be served"};
      return result;
    }
    all.push_back(engine::view_of(*value.tensor));
    if (by_rows && (all.back().shape.rank() == 0 || all.back().shape[0] != result.bucket_rows)) {
      result.status = Error{Code::kInternal, fmt::format("output '{}' is {} after a run of {} rows", model_->outputs()[i].name,
                                                         describe(value), result.bucket_rows)};
      return result;
    }
  }
  std::vector<TensorView> outputs;
  int64_t first = 0;
  for (const auto& job : jobs) {
    for (const TensorView& view : all) outputs.push_back(by_rows ? rows_of(view, first, job->rows) : view);
    first += job->rows;
  }
  result.outputs_each = all.size();
  result.batch = Outputs::of(std::move(outputs), held);
  result.output = Clock::now() - computed;
  return result;
}

/// The one whose inputs have just these shapes, if there is one.
Instance::Slot* Instance::find_slot(const Job& job, int64_t bucket_rows) {
  const bool by_rows = model_->batchable().yes && !model_->batchable().symbol.empty();
  const auto fits = [&](const TensorView& input, const engine::TensorInfo& info) {
    Shape shape = input.shape;
    if (by_rows) shape[0] = bucket_rows;
    return shape == info.shape;
  };
  return slots_.find([&](const Slot& slot) { return std::ranges::equal(job.inputs, slot.executor->inputs(), fits); });
}

/// Null where there is none and none may be made.
Result<Instance::Slot*> Instance::slot_for(const Job& job, int64_t bucket_rows, bool may_make) {
  if (job.padded.empty())
    if (Slot* const found = find_slot(job, bucket_rows)) return found;
  SERIN_TRY(graph::Bindings bindings, engine::bindings_for(model_->inputs(), job.inputs));
  for (const auto& [dimension, size] : job.padded) bindings[dimension] = size;
  if (model_->batchable().yes && !model_->batchable().symbol.empty()) bindings[model_->batchable().symbol] = bucket_rows;
  return slot_for(bindings, may_make);
}

Result<Instance::Slot*> Instance::slot_for(const graph::Bindings& bindings, bool may_make) {
  if (Slot* const found = slots_.find([&](const Slot& slot) { return slot.bindings == bindings; })) return found;
  if (!may_make) return nullptr;
  while (slots_.size() >= options_.most_sizes)  // first: on a device the new one may need its memory
    slots_.drop_oldest();
  SERIN_TRY(auto executor, model_->executor(bindings, options_.arena));
  Slot& slot = slots_.add({.bindings = bindings, .executor = std::move(executor)});
  slot.staging = slot.executor->staged_inputs();
  for (TensorView& staging : slot.staging) {
    if (!staging.data) staging.data = slot.memory.emplace_back(staging_bytes(staging)).data();
  }
  return &slot;
}

Instance::RunResult Instance::run(std::span<const std::shared_ptr<Job>> jobs, bool only_if_ready) {
  if (!model_->planned()) return interpret(jobs);
  RunResult result;
  const auto fail = [&](Error error) {
    result.status = std::move(error);
    return std::move(result);
  };
  const bool batchable = model_->batchable().yes;
  int64_t rows = 0;
  for (const auto& job : jobs) rows += job->rows;
  result.bucket_rows = batchable ? bucket_rows(rows, options_.max_batch) : rows;

  auto found = slot_for(*jobs.front(), result.bucket_rows, /*may_make=*/!only_if_ready);
  if (!found) return fail(found.error());
  result.ready = *found != nullptr;
  if (!result.ready) return result;
  Slot& slot = **found;

  const auto started = Clock::now();
  const auto infos = slot.executor->inputs();
  inputs_.clear();
  for (size_t i = 0; i < infos.size(); ++i) {
    const bool whole = jobs.size() == 1 && jobs.front()->inputs[i].shape == infos[i].shape;
    inputs_.push_back(whole ? jobs.front()->inputs[i] : gather(jobs, i, infos[i], slot.staging[i], batchable));
  }

  std::shared_ptr<Block> block = blocks_.take();
  for (const engine::TensorInfo& info : slot.executor->outputs()) block->tensors.push_back(TensorView{info.dtype, info.shape, nullptr});
  if (auto allocated = block->allocate(); !allocated) return fail(allocated.error());

  const auto gathered = Clock::now();
  result.input = gathered - started;
  if (auto ran = slot.executor->run(inputs_, block->tensors); !ran) return fail(ran.error());
  const auto computed = Clock::now();
  result.infer = computed - gathered;

  result.outputs_each = block->tensors.size();
  const auto shared = share_out(jobs, std::move(block), result.bucket_rows);
  if (!shared) return fail(shared.error());
  result.batch = {*shared, (*shared)->tensors};
  result.output = Clock::now() - computed;
  return result;
}

/// In place of the whole batch's tensors those of each job.
Result<std::shared_ptr<const Instance::Block>> Instance::share_out(std::span<const std::shared_ptr<Job>> jobs, std::shared_ptr<Block> block,
                                                                   int64_t bucket_rows) {
  outputs_.swap(block->tensors);
  block->tensors.clear();
  int64_t first_row = 0;
  for (const auto& job : jobs) {
    for (TensorView view : outputs_) {
      if (model_->batchable().yes) {
        const size_t row_bytes = view.bytes() / static_cast<size_t>(bucket_rows);
        view.data = view.as<std::byte>() + static_cast<size_t>(first_row) * row_bytes;
        view.shape[0] = job->rows;
      }
      block->tensors.push_back(view);
    }
    first_row += job->rows;
  }
  const bool any_padded = std::ranges::any_of(jobs, [](const auto& job) { return !job->padded.empty(); });
  if (any_padded) return crop(jobs, *block);
  return std::shared_ptr<const Block>(std::move(block));
}

/// Results of jobs that were computed with larger sizes than their own.
Result<std::shared_ptr<const Instance::Block>> Instance::crop(std::span<const std::shared_ptr<Job>> jobs, const Block& whole) {
  const std::shared_ptr<Block> own = blocks_.take();
  const auto infos = model_->outputs();
  for (size_t at = 0; at < whole.tensors.size(); ++at) {
    TensorView& tensor = own->tensors.emplace_back(whole.tensors[at]);
    const Job& job = *jobs[at / infos.size()];
    if (!job.padded.empty())
      tensor.shape = graph::known_shape(graph::bind(infos[at % infos.size()].dims, job.sizes)).value_or(tensor.shape);
  }
  SERIN_CHECK(own->allocate());
  for (size_t at = 0; at < whole.tensors.size(); ++at) {
    const TensorView &from = whole.tensors[at], &to = own->tensors[at];
    copy_overlap(from.as<const std::byte>(), from.shape.dims(), to.as<std::byte>(), to.shape.dims(), dtype_size(to.dtype));
  }
  return std::shared_ptr<const Block>(own);
}

size_t Instance::arena_bytes() const {
  size_t bytes = 0;
  for (const auto& slot : slots_) bytes += slot.executor->arena_bytes();
  return bytes;
}

}  // namespace serin::serving
