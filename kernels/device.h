// device.h: the memory and the queues of one accelerator: as little of a driver as the engine needs.
//
//   Device& device = *backend.device();                     // null: the backend's kernels work on ordinary memory
//   std::unique_ptr<Queue> queue = device.make_queue();
//   kernel.run(Stream{.scratch = ..., .queue = queue->native()}, ...);   // enqueued, not done
//   if (Fault fault = queue->finish()) ...                  // done, or the device is lost
//
// kernels/cuda/device.cc implements it on the CUDA runtime. Tests build the same file on an emulated runtime (tests/gpu/emulator), where everything can go
// wrong that goes wrong on a device.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/backend.h"

namespace serin::kernels {

/// Work that was recorded once and can be enqueued again as one (a CUDA graph): the same kernels on the same addresses.
class Recording {
 public:
  virtual ~Recording() = default;
};

/// Runs what is enqueued in order. One thread at a time.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual void* native() = 0;  ///< Stream::queue

  /// Waits until everything is done. A fault means that the device is lost (Device::lost).
  virtual Fault finish() = 0;
  /// From here on nothing runs: what is enqueued is recorded.
  virtual Fault begin_recording() = 0;
  /// Null, with the reason in `fault`, where something was enqueued that cannot be recorded.
  virtual std::unique_ptr<Recording> end_recording(Fault& fault) = 0;
  virtual Fault replay(const Recording& recording) = 0;

  virtual Fault copy(void* to, const void* from, size_t bytes) = 0;  ///< between any two memories
  virtual Fault clear(void* to, size_t bytes) = 0;                   ///< of the device, to zero

  /// The device notes when it comes here; what is recorded, in each replay. `number`: of one of the queue's marks, from 0 on.
  virtual Fault mark(size_t number) = 0;
  /// Nanoseconds of the device from one mark to the other, once all is finished.
  virtual Fault time_between(size_t from, size_t to, int64_t& nanoseconds) = 0;
};

/// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  struct Info {
    std::string name;          ///< "NVIDIA H200"
    std::string id;            ///< "GPU-4f6c...": of this one, wherever it is plugged
    std::string pci_bus_id;    ///< "0000:1b:00.0": where; the same for all who share it (MIG)
    std::string architecture;  ///< "sm_90"
    size_t memory_bytes = 0;
  };
  virtual const Info& info() const = 0;
  virtual size_t free_bytes() const = 0;

  /// What the calling thread enqueues from here on goes to this device: before kernels are prepared or run. Costs nothing where it is so already.
  virtual void make_current() const = 0;

  /// Null where there is not that much. Aligned to 256 bytes. Contents are anything.
  virtual std::byte* allocate(size_t bytes) = 0;
  virtual void release(std::byte* memory) = 0;
  /// Of the host, where copies to and from the device do not wait for each other. The same.
  virtual std::byte* allocate_pinned(size_t bytes) = 0;
  virtual void release_pinned(std::byte* memory) = 0;

  /// Work of a queue with `priority` above 0 goes before that of others, below 0 after it.
  virtual std::unique_ptr<Queue> make_queue(int priority = 0) = 0;

  /// Why no more work can be done until the process ends; nothing while all is well.
  virtual Fault lost() const = 0;
  /// Whether somebody has waited in Queue::finish() for longer than `limit` and may never return: then the device is lost. From any thread.
  virtual bool hangs(std::chrono::milliseconds limit) = 0;
};

}  // namespace serin::kernels
