// sizes.cc: the sizes that are prepared are few: powers of two of rows, and what the settings name for other dimensions.

#include "runtime/serving/scheduling/sizes.h"

#include <algorithm>
#include <bit>
#include <string>

#include "runtime/base/aligned_buffer.h"

namespace serin::serving {
namespace {

/// A symbol that is on the first axis wherever it occurs: a batch in all but proof.
bool only_counts_rows(const engine::Model& model, const std::string& symbol) {
  for (const engine::TensorInfo& info : model.inputs()) {
    for (size_t axis = 1; axis < info.dims.size(); ++axis) {
      const auto symbols = info.dims[axis].symbols();
      if (std::ranges::find(symbols, symbol) != symbols.end()) return false;
    }
  }
  return true;
}

}  // namespace

int64_t most_rows(const engine::Model& model, const ModelSettings& settings) {
  return model.batchable().yes && settings.batching ? settings.max_batch : 1;
}

int64_t bucket_rows(int64_t rows, int64_t max_batch) {
  return std::min(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows))), std::max(max_batch, rows));
}

std::vector<graph::Bindings> sizes_to_be_ready_for(const engine::Model& model, const ModelSettings& settings, int64_t max_batch) {
  std::vector<graph::Bindings> sizes(1);
  for (const std::string& symbol : model.symbols()) {
    std::vector<int64_t> values;
    if (model.batchable().yes && symbol == model.batchable().symbol) {
      for (int64_t rows = 1; rows < max_batch; rows *= 2) values.push_back(rows);
      values.push_back(max_batch);
    } else if (const auto named = settings.buckets.find(symbol); named != settings.buckets.end()) {
      values = named->second;
    } else if (only_counts_rows(model, symbol)) {
      values.push_back(1);
    }
    std::vector<graph::Bindings> longer;
    for (const graph::Bindings& each : sizes) {
      for (const int64_t value : values) {
        longer.push_back(each);
        longer.back()[symbol] = value;
      }
    }
    sizes = std::move(longer);
  }
  return sizes;
}

int cpu_instances(const ModelSettings& settings, int cores) { return settings.instances.value_or(std::max(1, cores / settings.threads)); }

size_t staging_bytes(const TensorView& input) { return std::max<size_t>(1, input.bytes()); }

size_t result_bytes(std::span<const TensorView> results) {
  size_t bytes = 0;
  for (const TensorView& tensor : results) bytes += AlignedBuffer::rounded_up(tensor.bytes());
  return std::max<size_t>(bytes, 1);  // what is empty has a place, too
}

}  // namespace serin::serving
