#include "runtime/serving/scheduling/response_cache.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

namespace serin::serving {
namespace {

constexpr size_t kOverhead = 256;  // of an entry beside its tensors, about

size_t bytes_of(std::span<const TensorView> tensors) {
  size_t bytes = 0;
  for (const TensorView& tensor : tensors) {
    bytes += sizeof(TensorView) + tensor.bytes();
    if (tensor.dtype != DType::kString) continue;
    for (const std::string& text : tensor.span<const std::string>()) bytes += sizeof(std::string) + text.size();
  }
  return bytes;
}

void mix(uint64_t& hash, uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29); }

std::string_view bytes_in(const TensorView& tensor) { return {tensor.as<const char>(), tensor.bytes()}; }

bool same(const TensorView& a, const TensorView& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  if (a.dtype == DType::kString) return std::ranges::equal(a.span<const std::string>(), b.span<const std::string>());
  return bytes_in(a) == bytes_in(b);  // not values: -0 and 0, and NaNs, are told apart
}

}  // namespace

uint64_t hash_inputs(const Job& job) {
  uint64_t hash = job.inputs.size();
  for (const TensorView& input : job.inputs) {
    mix(hash, static_cast<uint64_t>(input.dtype));
    for (const int64_t dim : input.shape) mix(hash, static_cast<uint64_t>(dim));
    if (input.dtype != DType::kString)
      mix(hash, std::hash<std::string_view>()(bytes_in(input)));
    else
      for (const std::string& text : input.span<const std::string>()) mix(hash, std::hash<std::string>()(text));
  }
  return hash;
}

bool same_inputs(std::span<const TensorView> a, std::span<const TensorView> b) { return std::ranges::equal(a, b, same); }

Outputs copy_of(const Outputs& outputs) {
  struct Block {
    AlignedBuffer memory;
    std::vector<std::vector<std::string>> texts;
  };
  size_t bytes = 0;
  for (const TensorView& tensor : outputs.tensors) bytes += AlignedBuffer::rounded_up(tensor.bytes());
  const auto block = std::make_shared<Block>(Block{AlignedBuffer(bytes), {}});
  std::vector<TensorView> copies(outputs.tensors.begin(), outputs.tensors.end());
  size_t offset = 0;
  for (TensorView& tensor : copies) {
    if (tensor.dtype == DType::kString) {
      const auto texts = tensor.span<const std::string>();
      tensor.data = block->texts.emplace_back(texts.begin(), texts.end()).data();
      continue;
    }
    std::byte* place = block->memory.data() + offset;
    if (tensor.bytes() > 0) std::memcpy(place, tensor.data, tensor.bytes());
    tensor.data = place;
    offset += AlignedBuffer::rounded_up(tensor.bytes());
  }
  return Outputs::of(std::move(copies), block);
}

ResponseCache::Entries::Iterator ResponseCache::locate(const void* owner, uint64_t hash, const Job& job) {
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto at = begin; at != end; ++at)
    if (at->second->owner == owner && same_inputs(at->second->inputs.tensors, job.inputs)) return at->second;
  return entries_.end();
}

ResponseCache::Entries::Iterator ResponseCache::erase(Entries::Iterator entry) {
  const auto [begin, end] = by_hash_.equal_range(entry->hash);
  by_hash_.erase(std::find_if(begin, end, [&](const auto& at) { return at.second == entry; }));
  bytes_ -= entry->bytes;
  return entries_.erase(entry);
}

std::optional<Outputs> ResponseCache::find(const void* owner, uint64_t hash, const Job& job) {
  const MutexLock lock(mutex_);
  const auto entry = locate(owner, hash, job);
  if (entry == entries_.end()) return std::nullopt;
  entries_.use(entry);
  return entry->outputs;
}

void ResponseCache::insert(const void* owner, uint64_t hash, const Job& request, Outputs outputs) {
  const size_t bytes = kOverhead + bytes_of(request.inputs) + bytes_of(outputs.tensors);
  if (bytes > most_bytes_) return;
  Outputs inputs = copy_of({nullptr, request.inputs});
  const MutexLock lock(mutex_);
  if (locate(owner, hash, request) != entries_.end()) return;
  while (bytes_ + bytes > most_bytes_) erase(std::prev(entries_.end()));
  entries_.add({owner, hash, std::move(inputs), std::move(outputs), bytes});
  by_hash_.emplace(hash, entries_.begin());
  bytes_ += bytes;
}

void ResponseCache::forget(const void* owner) {
  const MutexLock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) entry = entry->owner == owner ? erase(entry) : std::next(entry);
}

size_t ResponseCache::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace serin::serving
