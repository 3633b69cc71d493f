// backend.cc: walks a kernel table, and keeps the weights that the kernels of one model share.

#include "kernels/backend.h"

#include "kernels/weight_memory.h"

namespace serin::kernels {

Prepared Backend::prepare(const OpDesc& desc, PrepareContext& context) const {
  Prepared prepared;
  for (const KernelRow& row : table_[desc.op.index()]) {
    std::string why;
    prepared.kernel = row.prepare(desc, context, why);
    if (prepared.kernel) {
      prepared.name = prepared.kernel->name().empty() ? std::string_view(row.name) : prepared.kernel->name();
      break;
    }
    if (!why.empty()) prepared.refusals.push_back({row.name, std::move(why)});  // no reason: the row is for another operator
  }
  return prepared;
}

PackedWeights::Buffer::Buffer(std::byte* memory, size_t size, std::function<void(std::byte*, size_t)> give_back)
    : data(memory), bytes(size), release(std::move(give_back)) {}
PackedWeights::Buffer::Buffer(size_t size) : Buffer(allocate_weight(size), size, free_weight) {}
PackedWeights::Buffer::~Buffer() { release(data, bytes); }

std::shared_ptr<const PackedWeights::Buffer> PackedWeights::make(size_t bytes, const std::function<void(std::byte*)>& pack) {
  auto buffer = std::make_shared<Buffer>(bytes);
  pack(buffer->data);
  return buffer;
}

std::shared_ptr<const PackedWeights::Buffer> PackedWeights::get(uint64_t id, std::string_view layout, size_t bytes,
                                                                const std::function<void(std::byte*)>& pack) {
  if (id == 0) {
    auto buffer = make(bytes, pack);
    const MutexLock lock(mutex_);
    std::erase_if(private_, [](const auto& weak) { return weak.expired(); });
    private_.push_back(buffer);
    return buffer;
  }

  // Two instances that load at once must not both hold a copy of every weight, even for a moment.
  const Key key(id, layout);
  const MutexLock lock(mutex_);
  packed_.wait(mutex_, [&]() SERIN_REQUIRES(mutex_) { return !in_work_.contains(key); });
  if (const auto found = shared_.find(key); found != shared_.end()) {
    if (auto held = found->second.lock()) return held;
  }
  in_work_.insert(key);
  std::shared_ptr<const Buffer> buffer;
  try {
    const MutexUnlock unlocked(mutex_);
    buffer = make(bytes, pack);
  } catch (...) {  // no memory: the next one may have more luck
    in_work_.erase(key);
    packed_.notify_all();
    throw;
  }
  in_work_.erase(key);
  std::erase_if(shared_,
                [](const auto& entry) { return entry.second.expired(); });  // a plan that is gone may have had constants of its own
  shared_[key] = buffer;
  packed_.notify_all();
  return buffer;
}

size_t PackedWeights::bytes() const {
  const MutexLock lock(mutex_);
  size_t total = 0;
  for (const auto& [key, weak] : shared_) {
    if (const auto buffer = weak.lock()) total += buffer->bytes;
  }
  for (const auto& weak : private_) {
    if (const auto buffer = weak.lock()) total += buffer->bytes;
  }
  return total;
}

Isa best_isa() {
#if defined(__x86_64__)
  // These look at CPUID and at what the operating system saves on a context switch (XGETBV).
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl");
  if (avx2 && avx512) return Isa::kAvx512;
  if (avx2) return Isa::kAvx2;
#endif
  return Isa::kScalar;
}

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kScalar: return "scalar";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
  }
  return "?";
}

}  // namespace serin::kernels
