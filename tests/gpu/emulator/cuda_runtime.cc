// cuda_runtime.cc: fibers for the threads of a block (cuda_runtime.h says why).

#include "cuda_runtime.h"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <thread>

namespace emulator {

dim3 thread_index, block_index, block_dim, grid_dim;
unsigned order = 1;
uint64_t launches = 0, replays = 0;
Device devices[kMostDevices];
int device_count = 1, driver_version = kRuntimeVersion, records_before_refusal = -1;

namespace {

namespace context = boost::context;

constexpr size_t kStack = 64 << 10;
constexpr size_t kGuard = 64;
constexpr std::byte kPoison{0xFF};  // NaN in every type that has one

struct Thread {
  context::fiber fiber;
  dim3 index;
  bool waits = false, done = false;
  const char* file = nullptr;  // of the barrier it waits at
  int line = 0;
  std::vector<PendingCopy> copies;
};

struct Warp {
  int alive = 0, arrived = 0;
  unsigned generation = 0, votes = 0, last_votes = 0;
  alignas(16) std::byte slots[2][32][16];
  bool present[2][32] = {};
  void* brought[32] = {};
};

struct Block {
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  int alive = 0, arrived = 0;
  std::vector<std::byte> shared;
  size_t running = 0;
  context::fiber scheduler;

  Warp& warp() { return warps[running / 32]; }
};

Block* block = nullptr;
std::mutex one_launch;

void yield() {
  const size_t self = block->running;
  block->scheduler = std::move(block->scheduler).resume();
  block->running = self;
  thread_index = block->threads[self].index;
}

void wait_here(const char* file, int line) {
  Thread& self = block->threads[block->running];
  self.waits = true, self.file = file, self.line = line;
  while (self.waits) yield();
}

void release(size_t first, size_t last) {
  for (size_t i = first; i < last && i < block->threads.size(); ++i) block->threads[i].waits = false;
}

void complete_block_barrier() {
  const Thread* at = nullptr;
  for (const Thread& thread : block->threads) {
    if (thread.done || !thread.waits) continue;
    if (at && (at->file != thread.file || at->line != thread.line)) fail("threads of one block wait at different barriers");
    at = &thread;
  }
  block->arrived = 0;
  release(0, block->threads.size());
}

void complete_warp(Warp& warp, size_t index) {
  warp.arrived = 0;
  ++warp.generation;
  warp.last_votes = std::exchange(warp.votes, 0);
  release(index * 32, index * 32 + 32);
}

void finish_thread() {
  if (!block->threads[block->running].copies.empty()) fail("a thread ends before its copies to shared memory have arrived");
  block->threads[block->running].done = true;
  Warp& warp = block->warp();
  --warp.alive, --block->alive;
  if (warp.alive > 0 && warp.arrived == warp.alive) complete_warp(warp, block->running / 32);
  if (block->alive > 0 && block->arrived == block->alive) complete_block_barrier();
}

void run_block(dim3 size, size_t shared_bytes, const std::function<void()>& body, std::mt19937& random) {
  static context::pooled_fixedsize_stack stacks(kStack);
  Block here;
  block = &here;
  const size_t count = size_t{size.x} * size.y * size.z;
  here.threads.resize(count);
  here.warps.resize((count + 31) / 32);
  here.alive = static_cast<int>(count);
  here.shared.assign(shared_bytes + kGuard, kPoison);
  if (reinterpret_cast<uintptr_t>(here.shared.data()) % 16 != 0) fail("shared memory is not aligned");
  std::vector<size_t> turns(count);
  for (size_t i = 0; i < count; ++i) {
    turns[i] = i;
    ++here.warps[i / 32].alive;
    Thread& thread = here.threads[i];
    thread.index = dim3(static_cast<unsigned>(i % size.x), static_cast<unsigned>(i / size.x % size.y),
                        static_cast<unsigned>(i / (size_t{size.x} * size.y)));
    thread.fiber = context::fiber(std::allocator_arg, stacks, [&](context::fiber&& scheduler) {
      here.scheduler = std::move(scheduler);
      body();
      finish_thread();
      return std::move(here.scheduler);
    });
  }
  if (order != 0) std::shuffle(turns.begin(), turns.end(), random);
  while (here.alive > 0) {
    bool moved = false;
    for (const size_t i : turns) {
      Thread& thread = here.threads[i];
      if (thread.done || thread.waits) continue;
      here.running = i;
      thread_index = thread.index;
      thread.fiber = std::move(thread.fiber).resume();
      moved = true;
    }
    if (!moved) fail("the threads of a block wait for each other");
  }
  for (size_t i = 0; i < kGuard; ++i) {
    if (here.shared[shared_bytes + i] != kPoison) fail("a block wrote past its shared memory");
  }
  block = nullptr;
}

}  // namespace

void fail(const char* what) {
  std::fprintf(stderr, "emulated device: %s (block %u,%u,%u)\n", what, block_index.x, block_index.y, block_index.z);
  std::abort();
}

void* shared_memory() { return block->shared.data(); }
int lane() { return static_cast<int>(block->running % 32); }

void block_barrier(const char* file, int line) {
  if (++block->arrived == block->alive) {
    block->threads[block->running].waits = true;
    block->threads[block->running].file = file, block->threads[block->running].line = line;
    complete_block_barrier();
  } else {
    wait_here(file, line);
  }
}

void exchange(unsigned mask, const void* value, size_t bytes, int from, void* result) {
  Warp& warp = block->warp();
  const unsigned side = warp.generation % 2;
  const int self = lane();
  if (!(mask >> self & 1u)) fail("a lane takes part in an exchange that its mask leaves out");
  std::memcpy(warp.slots[side][self], value, bytes);
  warp.present[side][self] = true;
  if (++warp.arrived == warp.alive)
    complete_warp(warp, block->running / 32);
  else
    wait_here("warp", 0);
  const bool there = from >= 0 && from < 32 && warp.present[side][from];
  std::memcpy(result, there ? static_cast<const void*>(warp.slots[side][from]) : value, bytes);
}

unsigned ballot(unsigned mask, bool predicate) {
  Warp& warp = block->warp();
  if (!(mask >> lane() & 1u)) fail("a lane takes part in a vote that its mask leaves out");
  if (predicate) warp.votes |= 1u << lane();
  if (++warp.arrived == warp.alive)
    complete_warp(warp, block->running / 32);
  else
    wait_here("warp", 0);
  return warp.last_votes;
}

void together(void* mine, void (*work)(void* const* lanes)) {
  Warp& warp = block->warp();
  if (warp.alive != 32) fail("an instruction of a whole warp meets a part of one");
  warp.brought[lane()] = mine;
  if (++warp.arrived == warp.alive) {
    work(warp.brought);
    complete_warp(warp, block->running / 32);
  } else {
    wait_here("warp", 0);
  }
}

void check_shared(const void* at, size_t bytes) {
  const auto first = static_cast<const std::byte*>(at) - block->shared.data();
  if (first < 0 || static_cast<size_t>(first) + bytes > block->shared.size() - kGuard)
    fail("an address is not in the block's shared memory");
}
std::vector<PendingCopy>& pending_copies() { return block->threads[block->running].copies; }

void run(dim3 grid, dim3 size, size_t shared_bytes, const std::function<void()>& thread) {
  if (size_t{size.x} * size.y * size.z > 1024) fail("a block of more than 1024 threads");
  if (grid.y > 65535 || grid.z > 65535) fail("a grid of more than 65535 blocks along y or z");
  const std::lock_guard lock(one_launch);
  static std::mt19937 random;
  grid_dim = grid, block_dim = size;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        block_index = dim3(x, y, z);
        run_block(size, shared_bytes, thread, random);
      }
    }
  }
}

namespace {

thread_local int current = 0;

/// Before main, so that the environment counts from the first call on.
const char* const kFaultFile = [] {
  const char* const count = std::getenv("SERIN_EMULATED_DEVICES");
  const char* const memory = std::getenv("SERIN_EMULATED_MEMORY");
  if (const char* const driver = std::getenv("SERIN_EMULATED_DRIVER")) driver_version = std::atoi(driver);
  if (count) device_count = std::clamp(std::atoi(count), 0, kMostDevices);
  for (Device& device : devices) {
    if (memory) device.memory_bytes = std::strtoull(memory, nullptr, 10);
  }
  return std::getenv("SERIN_EMULATED_FAULT");
}();

constexpr int kRefuses = -2;

cudaError_t sticky(int index = current) {
  if (std::ifstream file; kFaultFile && (file.open(kFaultFile), file)) {
    int device = 0, error = 0, number = 0;
    if (file >> device >> error && device >= 0 && device < device_count) {
      static std::atomic<int> refused = 0;
      if (error == kRefuses && file >> number && refused.exchange(number) != number)
        devices[device].refusals = 1;
      else if (error == kRefuses)
        ;
      else if (error < 0)
        devices[device].hangs = true;
      else
        devices[device].sticky = static_cast<cudaError_t>(error);
    }
  }
  return devices[index].sticky;
}

/// A thread that chose no device works with the first one: what needs a context makes one there.
void need_context() {
  if (devices[current].has_context.exchange(true)) return;
  if (const char* const path = std::getenv("SERIN_EMULATED_CONTEXTS")) std::ofstream(path, std::ios::app) << current << std::endl;
}

bool refuses() {
  for (int left = devices[current].refusals; left > 0;)
    if (devices[current].refusals.compare_exchange_weak(left, left - 1)) return true;
  return false;
}

/// A device refuses what is enqueued while another one is current.
void check_current(const Stream* stream) {
  if (stream && stream->device != current) fail("work is enqueued on a stream of a device that is not current");
}

}  // namespace

cudaError_t submit(Stream* stream, Work work) {
  need_context();
  check_current(stream);
  if (const cudaError_t error = sticky(); error != cudaSuccess) return error;
  if (refuses()) return cudaErrorMemoryAllocation;
  if (!stream || !stream->capturing) {
    work();
    return cudaSuccess;
  }
  if (stream->invalidated) return cudaErrorStreamCaptureInvalidated;
  const bool refused = records_before_refusal == 0;
  if (records_before_refusal >= 0) --records_before_refusal;
  if (refused) {
    stream->invalidated = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  stream->recorded.work.push_back(std::move(work));
  return cudaSuccess;
}

}  // namespace emulator

namespace {

using emulator::current, emulator::devices, emulator::need_context, emulator::sticky;

struct Piece {
  size_t bytes;
  int device;
};
std::mutex memory_mutex;
std::map<void*, Piece> device_memory;                         // guarded by memory_mutex
std::map<std::pair<const void*, int>, size_t> shared_limits;  // of kernels on a device; guarded by memory_mutex
constexpr size_t kSharedWithoutAsking = 48 << 10, kSharedAtMost = 227 << 10;

/// The device in whose memory all of it lies; -1: of none.
int device_of(const void* pointer, size_t bytes) {
  const std::lock_guard lock(memory_mutex);
  auto next = device_memory.upper_bound(const_cast<void*>(pointer));
  if (next == device_memory.begin()) return -1;
  const auto& [start, piece] = *--next;
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(pointer) - static_cast<const std::byte*>(start));
  return offset + bytes <= piece.bytes ? piece.device : -1;
}

}  // namespace

namespace emulator {

void check_global(const void* at, size_t bytes) {
  if (device_of(at, bytes) != current) fail("an address is not in the device's memory");
}

cudaError_t limit_shared(const void* kernel, size_t bytes) {
  if (bytes > kSharedAtMost) return cudaErrorInvalidValue;
  const std::lock_guard lock(memory_mutex);
  size_t& limit = shared_limits[{kernel, current}];
  if (bytes < limit) fail("the limit of a kernel's shared memory is lowered");
  limit = bytes;
  return sticky();
}
size_t shared_limit(const void* kernel) {
  const std::lock_guard lock(memory_mutex);
  const auto at = shared_limits.find({kernel, current});
  return at == shared_limits.end() ? kSharedWithoutAsking : std::max(kSharedWithoutAsking, at->second);
}
cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> thread) {
  if (config.dynamicSmemBytes > shared_limit(kernel)) return cudaErrorInvalidValue;
  return submit(config.stream, [config, thread = std::move(thread)] {
    ++launches;
    run(config.gridDim, config.blockDim, config.dynamicSmemBytes, thread);
  });
}

}  // namespace emulator

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureWrongThread: return "cudaErrorStreamCaptureWrongThread";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorECCUncorrectable: return "cudaErrorECCUncorrectable";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorNotReady: return "cudaErrorNotReady";
  }
  return "cudaErrorUnknown";
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
cudaError_t cudaGetLastError() { return sticky(); }
cudaError_t cudaPeekAtLastError() { return sticky(); }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = emulator::driver_version;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = emulator::kRuntimeVersion;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  if (emulator::driver_version < emulator::kRuntimeVersion) return cudaErrorInsufficientDriver;
  *count = emulator::device_count;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= emulator::device_count) return cudaErrorInvalidDevice;
  current = device;
  need_context();  // since CUDA 12
  return sticky();
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return sticky();
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  std::snprintf(id, static_cast<size_t>(bytes), "0000:%02x:00.0", 0x10 + device);
  return sticky(device);
}
cudaError_t cudaDeviceGetAttribute(int* value, int attribute, int device) {
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = properties.major; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(properties.sharedMemPerBlockOptin); break;
    default: *value = properties.multiProcessorCount;
  }
  return error;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  properties->uuid.bytes[15] = static_cast<char>(device);
  std::strcpy(properties->name, devices[device].name);
  properties->totalGlobalMem = devices[device].memory_bytes;
  properties->sharedMemPerBlockOptin = kSharedAtMost;
  properties->major = 9;
  properties->multiProcessorCount = 4;
  properties->l2CacheSize = 1 << 20;
  return sticky(device);
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  need_context();
  const size_t bytes = *total = devices[current].memory_bytes;
  *free = bytes - std::min<size_t>(bytes, devices[current].allocated_bytes);
  return sticky();
}
cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  need_context();
  const std::lock_guard lock(memory_mutex);
  if (const cudaError_t error = sticky(); error != cudaSuccess) return error;
  if (devices[current].allocated_bytes + bytes > devices[current].memory_bytes) return cudaErrorMemoryAllocation;
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*pointer) return cudaErrorMemoryAllocation;
  std::memset(*pointer, 0xFF, bytes);
  device_memory[*pointer] = {bytes, current};
  devices[current].allocated_bytes += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  need_context();
  if (!pointer) return cudaSuccess;
  while (sticky() == cudaSuccess && devices[current].hangs) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::lock_guard lock(memory_mutex);
  const auto at = device_memory.find(pointer);
  if (at == device_memory.end()) emulator::fail("memory is freed that was not allocated");
  devices[at->second.device].allocated_bytes -= at->second.bytes;
  device_memory.erase(at);
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  need_context();
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return sticky();
}
cudaError_t cudaFreeHost(void* pointer) {
  need_context();
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind == cudaMemcpyHostToDevice && (device_of(to, bytes) != current || device_of(from, bytes) >= 0))
    emulator::fail("a copy to the device goes elsewhere");
  if (kind == cudaMemcpyDeviceToHost && (device_of(to, bytes) >= 0 || device_of(from, bytes) != current))
    emulator::fail("a copy from the device comes from elsewhere");
  return emulator::submit(stream, [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return emulator::submit(stream, [=] { std::memset(to, value, bytes); });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  need_context();
  *least = 0, *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  need_context();
  *stream = new emulator::Stream{.device = current, .priority = priority};
  return sticky();
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  need_context();
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  while (sticky(stream ? stream->device : current) == cudaSuccess && devices[stream ? stream->device : current].hangs)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return stream && stream->capturing ? cudaErrorStreamCaptureUnsupported : sticky(stream ? stream->device : current);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  need_context();
  *event = new emulator::Event;
  return sticky();
}
/// While a stream is captured only what has the flag is in the graph; other events are for what waits within it.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (stream && stream->capturing && flags != cudaEventRecordExternal) return sticky();
  if (flags == cudaEventRecordExternal && !(stream && stream->capturing)) return cudaErrorInvalidValue;
  event->device = stream ? stream->device : current;
  return emulator::submit(stream, [event] { event->happened = true, event->when = std::chrono::steady_clock::now(); });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const cudaError_t error = sticky(event->device);
  return error == cudaSuccess && devices[event->device].hangs ? cudaErrorNotReady : error;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  cudaError_t error = cudaErrorNotReady;
  while ((error = cudaEventQuery(event)) == cudaErrorNotReady) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return error;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (!begin->happened || !end->happened) return cudaErrorInvalidValue;
  *milliseconds = std::chrono::duration<float, std::milli>(end->when - begin->when).count();
  return sticky();
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  need_context();
  delete event;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->capturing = true;
  stream->invalidated = false;
  stream->recorded.work.clear();
  return sticky(stream->device);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  stream->capturing = false;
  if (stream->invalidated) return cudaErrorStreamCaptureInvalidated;
  *graph = new emulator::Graph(std::move(stream->recorded));
  return sticky(stream->device);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  need_context();
  *executable = new emulator::Graph(*graph);
  return sticky();
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  emulator::check_current(stream);
  if (const cudaError_t error = sticky(); error != cudaSuccess) return error;
  if (emulator::refuses()) return cudaErrorMemoryAllocation;
  ++emulator::replays;
  for (const emulator::Work& work : executable->work) work();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  need_context();
  delete executable;
  return cudaSuccess;
}
