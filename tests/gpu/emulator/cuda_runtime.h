// cuda_runtime.h: as much of the CUDA runtime as kernels/cuda/ uses, on this machine's processor.
//
// The kernels' sources are compiled twice: by nvcc, and by g++ with this folder in front of the include path. Each thread of a block is a fiber; a barrier or a
// warp's exchange is where a fiber waits. So index arithmetic, barriers, shuffles, tails and guards are run and compared with kernels/ref on machines
// without a GPU. What it cannot show: speed, and races between instructions; those between barriers it looks for by running the threads of a block in
// a different order every time (`emulator::order`).
//
// It is stricter than a device: a block whose threads wait at different barriers, or a write past dynamic shared memory, ends the program with the reason.
// Memory is ordinary memory, streams are run at once, a captured graph is a list of closures.
//
// There may be several devices. In a program of its own the environment says how many and what goes wrong: SERIN_EMULATED_DEVICES (1), SERIN_EMULATED_MEMORY
// (bytes of each), SERIN_EMULATED_DRIVER (12040: CUDA 12.4) and SERIN_EMULATED_FAULT, a file that may appear at any time: "1 700" in it means that all of device 1 fails with cudaErrorIllegalAddress,
// "1 -1" that what it is given to do never ends, and "1 -2 7" that it refuses its next piece of work, once for each third number.
// SERIN_EMULATED_CONTEXTS names a file that gets a line with the number of each device that gets a context.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
};
using uint3 = dim3;

// ---- the running thread ----

namespace emulator {

extern dim3 thread_index, block_index, block_dim, grid_dim;

/// In what order the threads of a block take turns: every launch draws anew. 0: as they are numbered, always.
extern unsigned order;

/// How many launches and replays of graphs so far; for tests.
extern uint64_t launches, replays;

void* shared_memory();
[[noreturn]] void fail(const char* what);
void block_barrier(const char* file, int line);
/// All lanes of the warp that `mask` names meet; answers what lane `from` brought, or the own value where there is no such thread.
void exchange(unsigned mask, const void* value, size_t bytes, int from, void* result);
unsigned ballot(unsigned mask, bool predicate);
int lane();
/// All 32 lanes meet; the last to come calls `work` with what each brought, while the others wait.
void together(void* mine, void (*work)(void* const* lanes));

/// Ends the program if that is not in the block's shared memory; not in the memory of the device.
void check_shared(const void* at, size_t bytes);
void check_global(const void* at, size_t bytes);
/// A copy to shared memory that its thread has not waited for; `groups`: groups closed since it was begun.
struct PendingCopy {
  void* to;
  const void* from;
  int groups;
};
std::vector<PendingCopy>& pending_copies();

void run(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& thread);

template <class T>
T shuffle(unsigned mask, T value, int from) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
  T result;
  exchange(mask, &value, sizeof(T), from, &result);
  return result;
}

}  // namespace emulator

inline const dim3 &threadIdx = emulator::thread_index, &blockIdx = emulator::block_index, &blockDim = emulator::block_dim,
                  &gridDim = emulator::grid_dim;
constexpr int warpSize = 32;

#define __syncthreads() ::emulator::block_barrier(__FILE__, __LINE__)
inline void __syncwarp(unsigned mask = ~0u) { static_cast<void>(::emulator::ballot(mask, false)); }
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  return emulator::shuffle(mask, value, (emulator::lane() & ~(width - 1)) | (lane & (width - 1)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  const int from = emulator::lane() ^ lanes;
  return emulator::shuffle(mask, value, (from & ~(width - 1)) == (emulator::lane() & ~(width - 1)) ? from : emulator::lane());
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int in_group = emulator::lane() & (width - 1);
  return emulator::shuffle(mask, value, in_group < static_cast<int>(delta) ? emulator::lane() : emulator::lane() - static_cast<int>(delta));
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int in_group = emulator::lane() & (width - 1);
  return emulator::shuffle(mask, value,
                           in_group + static_cast<int>(delta) >= width ? emulator::lane() : emulator::lane() + static_cast<int>(delta));
}
inline unsigned __ballot_sync(unsigned mask, bool predicate) { return emulator::ballot(mask, predicate); }
inline bool __any_sync(unsigned mask, bool predicate) { return emulator::ballot(mask, predicate) != 0; }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(unsigned x) { return x ? std::countr_zero(x) + 1 : 0; }

// ---- arithmetic ----

inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.f / std::sqrt(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((static_cast<uint64_t>(a) * b) >> 32); }
template <class T>
T __ldg(const T* p) {
  return *p;
}
template <class T>
T atomicAdd(T* at, T value) {
  return std::exchange(*at, static_cast<T>(*at + value));
}
template <class T>
T atomicMin(T* at, T value) {
  return std::exchange(*at, std::min(*at, value));
}
template <class T>
T atomicMax(T* at, T value) {
  return std::exchange(*at, std::max(*at, value));
}
template <class T>
T atomicCAS(T* at, T expected, T value) {
  const T before = *at;
  if (before == expected) *at = value;
  return before;
}
/// sum + the products of the four signed bytes of a and b.
inline int __dp4a(int a, int b, int sum) {
  for (int shift = 0; shift < 32; shift += 8) sum += static_cast<int8_t>(a >> shift) * static_cast<int8_t>(b >> shift);
  return sum;
}

// ---- the host's side ----

enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorECCUncorrectable = 214,
  cudaErrorIllegalAddress = 700,
  cudaErrorNotReady = 600,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureWrongThread = 908,
};
const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
constexpr unsigned cudaStreamNonBlocking = 1;
constexpr unsigned cudaHostAllocDefault = 0;
constexpr unsigned cudaEventBlockingSync = 1, cudaEventDisableTiming = 2;
constexpr unsigned cudaEventRecordDefault = 0, cudaEventRecordExternal = 1;
constexpr int cudaDevAttrMultiProcessorCount = 16, cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97;

namespace emulator {
using Work = std::function<void()>;
struct Graph {
  std::vector<Work> work;
};
struct Stream {
  int device = 0, priority = 0;
  bool capturing = false, invalidated = false;
  Graph recorded;
};
struct Event {
  int device = 0;  ///< of the stream on which it was recorded
  bool happened = false;
  std::chrono::steady_clock::time_point when;
};
struct Device {
  std::atomic<size_t> memory_bytes = size_t{1} << 40, allocated_bytes = 0;
  const char* name = "emulated";
  std::atomic<cudaError_t> sticky = cudaSuccess;  ///< what everything answers from now on
  std::atomic<bool> hangs = false;                ///< who waits for it waits
  std::atomic<int> refusals = 0;                  ///< so many of the next pieces of work are refused, as where memory for them is missing
  std::atomic<bool> has_context = false;          ///< on a real one: hundreds of megabytes of it
};
constexpr int kMostDevices = 8;
extern Device devices[kMostDevices];
extern int device_count;
/// The newest CUDA that the driver knows, as cudaDriverGetVersion answers it; below kRuntimeVersion nothing works.
extern int driver_version;
constexpr int kRuntimeVersion = 13000;
/// After how many more pieces of work a stream refuses to record one, which invalidates what it records; negative: never.
extern int records_before_refusal;
cudaError_t submit(Stream* stream, Work work);
}  // namespace emulator

using cudaStream_t = emulator::Stream*;
using cudaGraph_t = emulator::Graph*;
using cudaGraphExec_t = emulator::Graph*;
using cudaEvent_t = emulator::Event*;

struct cudaDeviceProp {
  char name[256];
  struct {
    char bytes[16];
  } uuid;
  size_t totalGlobalMem;
  size_t sharedMemPerBlockOptin;
  int major, minor, multiProcessorCount, l2CacheSize;
};

cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceGetAttribute(int* value, int attribute, int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMalloc(void** pointer, size_t bytes);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* pointer);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  void* attrs = nullptr;
  unsigned numAttrs = 0;
};

namespace emulator {
/// How much dynamic shared memory launches of a kernel may take on the current device. A limit that becomes lower ends the program: another thread may be about to launch.
cudaError_t limit_shared(const void* kernel, size_t bytes);
/// Gives the stream a grid of which each thread calls `thread`. There is a call for every kernel, so nothing else is compiled for each.
cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> thread);
}  // namespace emulator

template <class... Expected, class... Actual>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Expected...), Actual&&... arguments) {
  return emulator::launch(*config, reinterpret_cast<const void*>(kernel),
                          [kernel, ... values = Expected(arguments)] { kernel(values...); });
}
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
template <class F>
cudaError_t cudaFuncSetAttribute(F* kernel, cudaFuncAttribute, int bytes) {
  return emulator::limit_shared(reinterpret_cast<const void*>(kernel), static_cast<size_t>(bytes));
}
