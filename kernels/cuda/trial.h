// trial.h: work timed by the device, on a stream and on memory of its own.
//
//   Trial trial;
//   void* const x = trial.take(bytes);
//   const std::optional<double> milliseconds = trial.time(kernel.scratch_bytes(), [&](void* scratch) { return enqueue(trial.stream(), x, scratch); });
#pragma once

#include <cuda_runtime.h>

#include <optional>
#include <vector>

namespace serin::kernels::cuda {

class Trial {
 public:
  Trial() { works_ = cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0) == cudaSuccess; }
  ~Trial() {
    if (stream_) cudaStreamDestroy(stream_);
    for (void* const each : memory_) cudaFree(each);
    if (scratch_) cudaFree(scratch_);
    cudaGetLastError();  // no memory for a measurement is no fault of the device
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  cudaStream_t stream() const { return stream_; }
  /// Whether all that was taken is there.
  bool works() const { return works_; }

  /// Memory for an operand. Null where there is none; then nothing is timed any more.
  void* take(size_t bytes) {
    void* const taken = works_ ? allocate(bytes) : nullptr;
    works_ = taken != nullptr;
    if (works_) memory_.push_back(taken);
    return taken;
  }

  /// Milliseconds of one call of `run`, the mean of five after a first one; nothing where memory is missing or a call fails. `run` enqueues on stream() and answers
  /// whether it could; its scratch is there while it is timed.
  template <class F>
  std::optional<double> time(size_t scratch_bytes, F&& run) {
    if (!works_ || !has_scratch(scratch_bytes)) return std::nullopt;
    return time_runs([&] { return run(scratch_); });
  }

 private:
  /// One for all runs, as large as any needs: giving memory back waits for whatever else is at work on the device.
  bool has_scratch(size_t bytes) {
    if (scratch_ && scratch_bytes_ >= bytes) return true;
    if (scratch_) cudaFree(scratch_);
    scratch_ = allocate(bytes);
    scratch_bytes_ = scratch_ ? bytes : 0;
    return scratch_ != nullptr;
  }

  /// Filled with bytes that are small numbers in every type of float: zeros would run faster than what comes.
  void* allocate(size_t bytes) {
    constexpr int kSmallNumbers = 0x3C;
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes + 1) != cudaSuccess) return nullptr;
    if (cudaMemsetAsync(memory, kSmallNumbers, bytes + 1, stream_) == cudaSuccess) return memory;
    cudaFree(memory);
    return nullptr;
  }

  template <class F>
  std::optional<double> time_runs(F&& run) {
    constexpr int kRuns = 5;
    cudaEvent_t begin = nullptr, end = nullptr;
    float milliseconds = 0;
    bool works = run() && cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess &&
                 cudaEventRecord(begin, stream_) == cudaSuccess;
    for (int i = 0; works && i < kRuns; ++i) works = run();
    works = works && cudaEventRecord(end, stream_) == cudaSuccess && cudaEventSynchronize(end) == cudaSuccess &&
            cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess;
    if (begin) cudaEventDestroy(begin);
    if (end) cudaEventDestroy(end);
    return works ? std::optional<double>(milliseconds / kRuns) : std::nullopt;
  }

  bool works_ = false;
  cudaStream_t stream_ = nullptr;
  std::vector<void*> memory_;
  void* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
};

}  // namespace serin::kernels::cuda
