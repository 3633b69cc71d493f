// device.cc: memory, streams and graphs of one CUDA device.
//
// An error of a kernel is sticky: from then on every call in this process fails with it, and only another process can use the device again. So the first
// one is kept, and all that follow answer it (Device::lost); the server then stops being live and is restarted.

#include "kernels/cuda/device.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "kernels/cuda/current.h"
#include "kernels/cuda/fault.h"
#include "kernels/cuda/traffic.h"
#include "kernels/mutex.h"

namespace serin::kernels::cuda {

namespace {

using Clock = std::chrono::steady_clock;

class CudaDevice;

class CudaRecording final : public Recording {
 public:
  CudaRecording(int device, cudaGraphExec_t graph) : device_(device), graph_(graph) {}
  ~CudaRecording() override {
    const CurrentDevice here(device_);
    cudaGraphExecDestroy(graph_);
  }
  cudaGraphExec_t graph() const { return graph_; }

 private:
  const int device_;
  const cudaGraphExec_t graph_;
};

class CudaQueue final : public Queue {
 public:
  CudaQueue(CudaDevice& device, cudaStream_t stream, cudaEvent_t done) : device_(device), stream_(stream), done_(done) {}
  ~CudaQueue() override;
  void* native() override { return stream_; }
  Fault finish() override;
  Fault begin_recording() override;
  std::unique_ptr<Recording> end_recording(Fault& fault) override;
  Fault replay(const Recording& recording) override;
  Fault copy(void* to, const void* from, size_t bytes) override;
  Fault clear(void* to, size_t bytes) override;
  Fault mark(size_t number) override;
  Fault time_between(size_t from, size_t to, int64_t& nanoseconds) override;

 private:
  CudaDevice& device_;
  const cudaStream_t stream_;
  const cudaEvent_t done_;  ///< a thread that waits for it sleeps
  std::vector<cudaEvent_t> marks_;
  bool records_ = false;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int index, Info info) : index_(index), info_(std::move(info)) {}

  const Info& info() const override { return info_; }
  size_t free_bytes() const override {
    size_t free = 0, total = 0;
    const CurrentDevice here(index_);
    return here.error() == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess ? free : 0;
  }

  std::byte* allocate(size_t bytes) override {
    void* memory = nullptr;
    const CurrentDevice here(index_);
    return works(here) && checked(cudaMalloc(&memory, bytes)) ? static_cast<std::byte*>(memory) : nullptr;
  }
  void release(std::byte* memory) override {
    if (hangs_) return;  // it would wait for what never ends
    const CurrentDevice here(index_);
    cudaFree(memory);
  }
  std::byte* allocate_pinned(size_t bytes) override {
    void* memory = nullptr;
    const CurrentDevice here(index_);
    return works(here) && checked(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault)) ? static_cast<std::byte*>(memory) : nullptr;
  }
  void release_pinned(std::byte* memory) override {
    if (hangs_) return;
    const CurrentDevice here(index_);
    cudaFreeHost(memory);
  }

  void make_current() const override { cudaSetDevice(index_); }

  std::unique_ptr<Queue> make_queue(int priority) override {
    int least = 0, greatest = 0;
    cudaStream_t stream = nullptr;
    cudaEvent_t done = nullptr;
    const CurrentDevice here(index_);
    bool made = works(here) && checked(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    const int wanted = priority > 0 ? greatest : priority < 0 ? least : (least + greatest) / 2;
    made = made && checked(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, wanted));
    made = made && checked(cudaEventCreateWithFlags(&done, cudaEventBlockingSync | cudaEventDisableTiming));
    if (!made && stream) cudaStreamDestroy(stream);
    return made ? std::make_unique<CudaQueue>(*this, stream, done) : nullptr;
  }

  Fault lost() const override {
    const MutexLock lock(mutex_);
    return lost_;
  }

  bool hangs(std::chrono::milliseconds limit) override {
    const bool found = traffic().waits_since(Clock::now() - limit);
    if (found) hangs_ = true;
    const MutexLock lock(mutex_);
    if (found && !lost_) lost_ = "what it was given to do has not ended for " + std::to_string(limit.count()) + " ms";
    return found;
  }

  int index() const { return index_; }
  Traffic& traffic() const { return Traffic::of(index_); }

  /// A call that was refused leaves the device whole. What a kernel broke every call answers from then on, also one that only asks.
  Fault check(cudaError_t error) {
    if (error == cudaSuccess) return kOk;
    cudaGetLastError();  // a refusal is forgotten once it is read
    size_t free = 0, total = 0;
    const CurrentDevice here(index_);
    return here.error() == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess ? fault_of(error) : lose(error);
  }
  Fault lose(cudaError_t error) {
    const MutexLock lock(mutex_);
    if (!lost_) lost_ = fault_of(error);
    return lost_;
  }

 private:
  bool checked(cudaError_t error) { return !check(error); }
  bool works(const CurrentDevice& here) { return checked(here.error()); }

  const int index_;
  const Info info_;
  std::atomic<bool> hangs_ = false;
  mutable Mutex mutex_;
  Fault lost_ SERIN_GUARDED_BY(mutex_);
};

CudaQueue::~CudaQueue() {
  const CurrentDevice here(device_.index());
  for (const cudaEvent_t mark : marks_) cudaEventDestroy(mark);
  cudaEventDestroy(done_);
  cudaStreamDestroy(stream_);
}

/// Short waits spin, since to sleep and to wake up takes several microseconds. Longer ones sleep: a core for each instance would be missing elsewhere.
Fault CudaQueue::finish() {
  const CurrentDevice here(device_.index());
  if (Fault ignored; records_) end_recording(ignored);  // who recorded was interrupted
  constexpr auto kSpin = std::chrono::microseconds(50);
  const Traffic::Wait wait(device_.traffic(), Traffic::kRun);
  const Clock::time_point begin = Clock::now();
  cudaError_t error = cudaEventRecord(done_, stream_);
  if (error == cudaSuccess) {
    do error = cudaEventQuery(done_);
    while (error == cudaErrorNotReady && Clock::now() - begin < kSpin);
  }
  if (error == cudaErrorNotReady) error = cudaEventSynchronize(done_);
  return error == cudaSuccess ? kOk : device_.lose(error);  // nothing that only waits is refused
}

/// Relaxed: what other threads do meanwhile on streams of their own is their business.
Fault CudaQueue::begin_recording() {
  Fault fault = device_.check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  records_ = !fault;
  return fault;
}

std::unique_ptr<Recording> CudaQueue::end_recording(Fault& fault) {
  records_ = false;
  cudaGraph_t graph = nullptr;
  cudaError_t error = cudaStreamEndCapture(stream_, &graph);
  cudaGraphExec_t executable = nullptr;
  if (error == cudaSuccess) error = cudaGraphInstantiate(&executable, graph, 0);
  if (graph) cudaGraphDestroy(graph);
  if (error == cudaSuccess) return std::make_unique<CudaRecording>(device_.index(), executable);
  cudaGetLastError();  // a capture that failed leaves the device whole
  fault = fault_of(error);
  return nullptr;
}

Fault CudaQueue::replay(const Recording& recording) {
  return device_.check(cudaGraphLaunch(static_cast<const CudaRecording&>(recording).graph(), stream_));
}

Fault CudaQueue::copy(void* to, const void* from, size_t bytes) {
  return device_.check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
}

Fault CudaQueue::clear(void* to, size_t bytes) { return device_.check(cudaMemsetAsync(to, 0, bytes, stream_)); }

/// Within a recording the mark is a part of it; without that flag it would say when it was recorded.
Fault CudaQueue::mark(size_t number) {
  while (marks_.size() <= number) {
    cudaEvent_t event = nullptr;
    if (Fault fault = device_.check(cudaEventCreate(&event))) return fault;
    marks_.push_back(event);
  }
  return device_.check(cudaEventRecordWithFlags(marks_[number], stream_, records_ ? cudaEventRecordExternal : cudaEventRecordDefault));
}

Fault CudaQueue::time_between(size_t from, size_t to, int64_t& nanoseconds) {
  float milliseconds = 0;
  if (Fault fault = device_.check(cudaEventElapsedTime(&milliseconds, marks_[from], marks_[to]))) return fault;
  nanoseconds = std::llround(static_cast<double>(milliseconds) * 1e6);
  return kOk;
}

/// "GPU-", or "MIG-" where it is a part of one, and the 16 bytes as nvidia-smi prints them. Such a part says so in its name: "NVIDIA H200 MIG 1g.18gb".
std::string id_of(const cudaDeviceProp& properties) {
  std::string id = std::string_view(properties.name).find(" MIG ") == std::string_view::npos ? "GPU-" : "MIG-";
  for (int i = 0; i < 16; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(properties.uuid.bytes[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) id += '-';
    id += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  return id;
}

/// "12.4"
std::string version_of(int number) { return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10); }

/// The runtime's own words for a driver that is old or absent are the same, and name no version.
Fault count_devices(int& count) {
  const cudaError_t error = cudaGetDeviceCount(&count);
  int driver = 0, runtime = 0;
  if (error != cudaErrorInsufficientDriver || cudaDriverGetVersion(&driver) != cudaSuccess ||
      cudaRuntimeGetVersion(&runtime) != cudaSuccess)
    return fault_of(error);
  if (driver == 0) return "there is no NVIDIA driver; this build needs CUDA " + version_of(runtime) + ": install driver 580 or newer";
  return "the NVIDIA driver is too old: it runs CUDA " + version_of(driver) + " at most, and this build needs CUDA " + version_of(runtime) +
         "; install driver 580 or newer";
}

/// Asked of the driver, without a context.
Fault read_info(int index, Device::Info& info) {
  cudaDeviceProp properties{};
  if (Fault fault = fault_of(cudaGetDeviceProperties(&properties, index))) return fault;
  char pci_bus_id[32] = "";  // absent in some containers: then only what NVML says of it is missing
  if (cudaDeviceGetPCIBusId(pci_bus_id, sizeof(pci_bus_id), index) != cudaSuccess) cudaGetLastError();
  info = {properties.name, id_of(properties), pci_bus_id, "sm_" + std::to_string(properties.major) + std::to_string(properties.minor),
          properties.totalGlobalMem};
  return kOk;
}

}  // namespace

std::vector<Device::Info> list_devices(std::string& why) {
  int count = 0;
  if (Fault fault = count_devices(count)) return why = *fault, std::vector<Device::Info>();
  std::vector<Device::Info> found(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) static_cast<void>(read_info(i, found[static_cast<size_t>(i)]));
  return found;
}

std::unique_ptr<Device> open_device(int index, std::string& why) {
  int count = 0;
  if (Fault fault = count_devices(count)) return why = *fault, nullptr;
  if (index < 0 || index >= count) {
    why = "there is no device " + std::to_string(index) + ", the machine has " + std::to_string(count);
    return nullptr;
  }
  Device::Info info;
  const CurrentDevice here(index);  // makes the context
  if (Fault fault = fault_of(here.error())) return why = *fault, nullptr;
  if (Fault fault = read_info(index, info)) return why = *fault, nullptr;
  return std::make_unique<CudaDevice>(index, std::move(info));
}

}  // namespace serin::kernels::cuda
