// trial.h: Times work on the device, on its own stream and memory.
//
//   Trial trial;
//   void* const x = trial.take(bytes);
//   const auto milliseconds = trial.time(kernel.scratch_bytes(), [&](void* scratch) { return enqueue(trial.stream(), x, scratch); });
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/cuda/traffic.h"

namespace serin::kernels::cuda {

class Trial {
 public:
  Trial() {
    int device = 0;
    works_ = cudaGetDevice(&device) == cudaSuccess && cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0) == cudaSuccess;
    traffic_ = &Traffic::of(device);
  }
  ~Trial() {
    const Traffic::Wait wait(*traffic_, Traffic::kMeasurement);  // memory is freed once the device has done all of its work
    if (stream_) cudaStreamDestroy(stream_);
    for (void* const each : memory_) cudaFree(each);
    if (scratch_) cudaFree(scratch_);
    cudaGetLastError();  // missing memory for a measurement is not a fault of the device
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  cudaStream_t stream() const { return stream_; }
  /// Whether all requested memory is available.
  bool works() const { return works_; }

  /// Memory for an operand. Null if there is none; then nothing is timed any more.
  void* take(size_t bytes) {
    void* const taken = works_ ? allocate(bytes) : nullptr;
    works_ = taken != nullptr;
    if (works_) memory_.push_back(taken);
    return taken;
  }

  /// Milliseconds of one call of `run` on the device; nothing if memory is missing or a call fails. `run` enqueues on stream() and returns
  /// whether that succeeded; its scratch exists while it is timed.
  template <class F>
  std::optional<double> time(size_t scratch_bytes, F&& run) {
    if (!works_ || !has_scratch(scratch_bytes)) return std::nullopt;
    const Traffic::Wait wait(*traffic_, Traffic::kMeasurement);
    return time_runs([&] { return run(scratch_); });
  }

 private:
  class Timer {
   public:
    explicit Timer(cudaStream_t stream) : stream_(stream) {
      works_ = cudaEventCreate(&begin_) == cudaSuccess && cudaEventCreate(&end_) == cudaSuccess;
    }
    ~Timer() {
      if (begin_) cudaEventDestroy(begin_);
      if (end_) cudaEventDestroy(end_);
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    /// Milliseconds on the device from before the work of `enqueue` until it is done.
    template <class F>
    std::optional<double> time(F&& enqueue) const {
      float milliseconds = 0;
      const bool works = works_ && cudaEventRecord(begin_, stream_) == cudaSuccess && enqueue() &&
                         cudaEventRecord(end_, stream_) == cudaSuccess && cudaEventSynchronize(end_) == cudaSuccess &&
                         cudaEventElapsedTime(&milliseconds, begin_, end_) == cudaSuccess;
      return works ? std::optional<double>(milliseconds) : std::nullopt;
    }

   private:
    const cudaStream_t stream_;
    cudaEvent_t begin_ = nullptr, end_ = nullptr;
    bool works_ = false;
  };

  struct Recorded {
    template <class F>
    Recorded(cudaStream_t stream, F&& enqueue) {
      if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) != cudaSuccess) return;
      const bool enqueued = enqueue();
      cudaGraph_t made = nullptr;
      const bool whole = cudaStreamEndCapture(stream, &made) == cudaSuccess && enqueued;
      if (!whole || cudaGraphInstantiate(&graph, made, 0) != cudaSuccess) graph = nullptr;
      if (made) cudaGraphDestroy(made);
      if (!graph) cudaGetLastError();  // a failed recording is not a fault of the device
    }
    ~Recorded() {
      if (graph) cudaGraphExecDestroy(graph);
    }
    Recorded(const Recorded&) = delete;
    Recorded& operator=(const Recorded&) = delete;

    cudaGraphExec_t graph = nullptr;
  };

  /// One for all runs, as large as any needs: releasing memory waits for all other work on the device.
  bool has_scratch(size_t bytes) {
    if (scratch_ && scratch_bytes_ >= bytes) return true;
    if (scratch_) cudaFree(scratch_);
    scratch_ = allocate(bytes);
    scratch_bytes_ = scratch_ ? bytes : 0;
    return scratch_ != nullptr;
  }

  /// Filled with bytes that are small numbers in every type of float: zeros would run faster than real data.
  void* allocate(size_t bytes) {
    constexpr int kSmallNumbers = 0x3C;
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes + 1) != cudaSuccess) return nullptr;
    if (cudaMemsetAsync(memory, kSmallNumbers, bytes + 1, stream_) == cudaSuccess) return memory;
    cudaFree(memory);
    return nullptr;
  }

  /// As a model runs it: from a recording, so that the device does not wait for the host. If `run` cannot be recorded, five calls are
  /// timed.
  template <class F>
  std::optional<double> time_runs(F&& run) {
    constexpr double kLongEnoughMs = 0.2;
    constexpr int kMostCalls = 20, kTimes = 3, kUnrecorded = 5;
    const Timer timer(stream_);
    if (!run()) return std::nullopt;  // libraries load their code
    const std::optional<double> one = timer.time(run);
    if (!one) return std::nullopt;
    const int calls = std::clamp(static_cast<int>(kLongEnoughMs / std::max(*one, 1e-6)), 1, kMostCalls);
    const auto repeat = [&run](int times) {
      bool works = true;
      for (int i = 0; works && i < times; ++i) works = run();
      return works;
    };
    const Recorded recorded(stream_, [&] { return repeat(calls); });
    if (!recorded.graph) {
      const auto milliseconds = timer.time([&] { return repeat(kUnrecorded); });
      return milliseconds ? std::optional(*milliseconds / kUnrecorded) : std::nullopt;
    }
    const auto replay = [&] { return cudaGraphLaunch(recorded.graph, stream_) == cudaSuccess; };
    std::optional<double> least;
    for (int i = 0; i <= kTimes; ++i) {
      const auto milliseconds = timer.time(replay);
      if (!milliseconds) return std::nullopt;
      if (i > 0) least = std::min(*milliseconds, least.value_or(*milliseconds));  // the first one uploads the recording
    }
    return *least / calls;
  }

  bool works_ = false;
  Traffic* traffic_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::vector<void*> memory_;
  void* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
};

}  // namespace serin::kernels::cuda
