// device.h: The memory and the queues of one accelerator: the part of a driver that the engine needs.
//
//   Device& device = *backend.device();                     // null: the backend's kernels work on ordinary memory
//   std::unique_ptr<Queue> queue = device.make_queue();
//   kernel.run(Stream{.scratch = ..., .queue = queue->native()}, ...);   // enqueued, not done
//   if (Fault fault = queue->finish()) ...                  // done, or the device is lost
//
// kernels/cuda/device.cc implements it on the CUDA runtime. Tests build the same file on an emulated runtime (tests/gpu/emulator), which
// can simulate every failure of a device.
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

/// Runs enqueued work in order. Only one thread at a time.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual void* native() = 0;  ///< Stream::queue

  /// Waits until everything is done. A fault means that the device is lost (Device::lost).
  virtual Fault finish() = 0;
  /// From here on enqueued work is recorded and does not run.
  virtual Fault begin_recording() = 0;
  /// Null, with the reason in `fault`, if the enqueued work includes something that cannot be recorded.
  virtual std::unique_ptr<Recording> end_recording(Fault& fault) = 0;
  virtual Fault replay(const Recording& recording) = 0;

  virtual Fault copy(void* to, const void* from, size_t bytes) = 0;  ///< between any two memories
  virtual Fault clear(void* to, size_t bytes) = 0;                   ///< memory of the device, to zero

  /// The device stores the time when it reaches this point; in a recording, in each replay. `number`: one of the queue's marks, from 0 on.
  virtual Fault mark(size_t number) = 0;
  /// Nanoseconds on the device between two marks, after all work has finished.
  virtual Fault time_between(size_t from, size_t to, int64_t& nanoseconds) = 0;
};

/// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  struct Info {
    std::string name;          ///< "NVIDIA H200"
    std::string id;            ///< "GPU-4f6c...": identifies this device in any slot
    std::string pci_bus_id;    ///< "0000:1b:00.0": its slot; the same for all MIG slices of a card
    std::string architecture;  ///< "sm_90"
    size_t memory_bytes = 0;
  };
  virtual const Info& info() const = 0;
  virtual size_t free_bytes() const = 0;

  /// Work that the calling thread enqueues from here on goes to this device. Call it before kernels are prepared or run. It costs nothing
  /// if it is current already. No other function changes the device of the calling thread.
  virtual void make_current() const = 0;

  /// Null if there is not enough memory. Aligned to 256 bytes. The content is undefined.
  virtual std::byte* allocate(size_t bytes) = 0;
  virtual void release(std::byte* memory) = 0;
  /// Memory of the host with which copies to and from the device do not wait for each other. The same rules apply.
  virtual std::byte* allocate_pinned(size_t bytes) = 0;
  virtual void release_pinned(std::byte* memory) = 0;

  /// Work of a queue with `priority` above 0 precedes that of others; below 0 it follows.
  virtual std::unique_ptr<Queue> make_queue(int priority = 0) = 0;

  /// The reason that the device can do no more work until the process ends; nothing if there is none.
  virtual Fault lost() const = 0;
  /// Whether a thread has waited in Queue::finish() for longer than `limit` and may never return: then the device is lost. Any thread may
  /// call this.
  virtual bool hangs(std::chrono::milliseconds limit) = 0;
};

}  // namespace serin::kernels
