// current.h: Makes a device the current one of the calling thread, and afterwards the one that was current before.
//
//   const CurrentDevice here(index);
//   if (here.error() == cudaSuccess) ... cudaMalloc(...)
//
// A thread that never chose a device works with the first one. That one is not made current again unless this process has opened it: to
// make a device current makes its context.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>

namespace serin::kernels::cuda {

class CurrentDevice {
 public:
  explicit CurrentDevice(int index) : index_(index) {
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = index;
    error_ = cudaSetDevice(index);
    if (error_ == cudaSuccess) opened() |= bit(index);
  }
  ~CurrentDevice() {
    if (before_ != index_ && (opened() & bit(before_)) != 0) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  cudaError_t error() const { return error_; }

 private:
  static std::atomic<uint64_t>& opened() {
    static std::atomic<uint64_t> devices = 0;
    return devices;
  }
  static uint64_t bit(int index) { return index >= 0 && index < 64 ? uint64_t{1} << index : 0; }

  const int index_;
  int before_ = 0;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace serin::kernels::cuda
