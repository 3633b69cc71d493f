// instance.cc: gather rows, run, hand out rows. A single job that fills its bucket is passed by pointer: nothing is copied on the way in.

#include "runtime/serving/instance.h"

#include <algorithm>
#include <bit>
#include <cstring>

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
TensorView gather(std::span<const std::shared_ptr<Job>> jobs, size_t input, const engine::TensorInfo& info, const AlignedBuffer& staging,
                  bool by_rows) {
  size_t done = 0;
  for (const auto& job : jobs) {
    const TensorView& own = job->inputs[input];
    Shape place = info.shape;
    if (by_rows) place[0] = job->rows;
    const size_t bytes = TensorView{info.dtype, place, nullptr}.bytes();
    if (own.shape != place) std::memset(staging.data() + done, 0, bytes);
    copy_overlap(own.as<const std::byte>(), own.shape.dims(), staging.data() + done, place.dims(), dtype_size(info.dtype));
    done += bytes;
  }
  std::memset(staging.data() + done, 0, staging.size() - done);
  return TensorView{info.dtype, info.shape, staging.data()};
}

/// Memory for tensors of these types and shapes, whose data is set.
std::shared_ptr<AlignedBuffer> allocate(std::span<TensorView> tensors) {
  size_t bytes = 0;
  for (const TensorView& tensor : tensors) bytes += AlignedBuffer::rounded_up(tensor.bytes());
  auto block = std::make_shared<AlignedBuffer>(std::max<size_t>(bytes, 1));  // what is empty has a place, too
  size_t offset = 0;
  for (TensorView& tensor : tensors) {
    tensor.data = block->data() + offset;
    offset += AlignedBuffer::rounded_up(tensor.bytes());
  }
  return block;
}

/// The results of a job that was computed with larger sizes than its own.
Outputs cropped(const Outputs& whole, std::span<const engine::TensorInfo> infos, const graph::Bindings& sizes) {
  Outputs own{nullptr, whole.tensors};
  for (size_t i = 0; i < infos.size(); ++i)
    own.tensors[i].shape = graph::known_shape(graph::bind(infos[i].dims, sizes)).value_or(whole.tensors[i].shape);
  own.block = allocate(own.tensors);
  for (size_t i = 0; i < infos.size(); ++i) {
    const TensorView &from = whole.tensors[i], &to = own.tensors[i];
    copy_overlap(from.as<const std::byte>(), from.shape.dims(), static_cast<std::byte*>(to.data), to.shape.dims(), dtype_size(to.dtype));
  }
  return own;
}

/// An input as the engine takes it. Shares the job's memory and keeps the job, because a result may be a view of it.
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

}  // namespace

/// A model without a plan: one request at a time, whose results have the sizes that the run gave them.
Instance::RunResult Instance::interpret(const std::shared_ptr<Job>& job) {
  const auto started = Clock::now();
  std::vector<engine::Value> inputs;
  for (const TensorView& view : job->inputs) inputs.push_back(value_of(job, view));
  auto results = model_->run(inputs, &job->given_up());
  RunResult result;
  result.bucket_rows = 1;
  result.infer = Clock::now() - started;
  if (!results) {
    result.status = results.error();
    return result;
  }
  auto held = std::make_shared<std::vector<engine::Value>>(std::move(*results));
  Outputs outputs{held, {}};
  for (size_t i = 0; i < held->size(); ++i) {
    const engine::Value& value = (*held)[i];
    if (!value.tensor) {
      result.status =
          Error{Code::kUnsupported, "output '" + model_->outputs()[i].name + "' is " + describe(value) + ", which cannot be served"};
      return result;
    }
    outputs.tensors.push_back(engine::view_of(*value.tensor));
  }
  result.outputs.push_back(std::move(outputs));
  return result;
}

Result<Instance::Slot*> Instance::slot_for(const graph::Bindings& bindings) {
  for (const auto& slot : slots_) {
    if (slot->bindings != bindings) continue;
    slot->last_used = ++uses_;
    return slot.get();
  }
  while (slots_.size() >= options_.most_sizes)  // first: on a device the new one may need its memory
    slots_.erase(std::ranges::min_element(slots_, {}, [](const auto& held) { return held->last_used; }));
  SERIN_TRY(auto executor, model_->executor(bindings, options_.arena));
  auto slot = std::make_unique<Slot>();
  slot->bindings = bindings;
  slot->executor = std::move(executor);
  slot->last_used = ++uses_;
  for (const engine::TensorInfo& info : slot->executor->inputs())
    slot->staging.emplace_back(std::max<size_t>(1, static_cast<size_t>(info.shape.elements()) * dtype_size(info.dtype)));
  slots_.push_back(std::move(slot));
  return slots_.back().get();
}

Instance::RunResult Instance::run(std::span<const std::shared_ptr<Job>> jobs) {
  if (!model_->planned()) return interpret(jobs.front());  // not batchable: there is one
  RunResult result;
  const auto fail = [&](Error error) {
    result.status = std::move(error);
    return std::move(result);
  };
  const bool batchable = model_->batchable().yes;
  int64_t rows = 0;
  for (const auto& job : jobs) rows += job->rows;
  result.bucket_rows =
      batchable ? std::min(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows))), std::max(options_.max_batch, rows)) : rows;

  auto bindings = engine::bindings_for(model_->inputs(), jobs.front()->inputs);
  if (!bindings) return fail(bindings.error());
  for (const auto& [dimension, size] : jobs.front()->padded) (*bindings)[dimension] = size;
  if (batchable && !model_->batchable().symbol.empty()) (*bindings)[model_->batchable().symbol] = result.bucket_rows;
  auto found = slot_for(*bindings);
  if (!found) return fail(found.error());
  Slot& slot = **found;

  const auto started = Clock::now();
  const auto infos = slot.executor->inputs();
  std::vector<TensorView> inputs;
  for (size_t i = 0; i < infos.size(); ++i) {
    const bool whole = jobs.size() == 1 && jobs.front()->inputs[i].shape == infos[i].shape;
    inputs.push_back(whole ? jobs.front()->inputs[i] : gather(jobs, i, infos[i], slot.staging[i], batchable));
  }

  std::vector<TensorView> outputs;
  for (const engine::TensorInfo& info : slot.executor->outputs()) outputs.push_back(TensorView{info.dtype, info.shape, nullptr});
  const std::shared_ptr<AlignedBuffer> block = allocate(outputs);

  const auto gathered = Clock::now();
  result.input = gathered - started;
  if (auto ran = slot.executor->run(inputs, outputs); !ran) return fail(ran.error());
  result.infer = Clock::now() - gathered;

  int64_t first_row = 0;
  for (const auto& job : jobs) {
    Outputs own{block, outputs};
    if (batchable) {
      for (TensorView& view : own.tensors) {
        const size_t row_bytes = view.bytes() / static_cast<size_t>(result.bucket_rows);
        view.data = static_cast<std::byte*>(view.data) + static_cast<size_t>(first_row) * row_bytes;
        view.shape[0] = job->rows;
      }
    }
    first_row += job->rows;
    if (!job->padded.empty()) own = cropped(own, model_->outputs(), job->sizes);
    result.outputs.push_back(std::move(own));
  }
  return result;
}

size_t Instance::arena_bytes() const {
  size_t bytes = 0;
  for (const auto& slot : slots_) bytes += slot->executor->arena_bytes();
  return bytes;
}

}  // namespace serin::serving
