// backend.h: The only interface between the engine and numeric code.
//
//   Prepared p = backend.prepare(desc, context);        // at load: picks the first row of the operator's table that accepts, packs weights
//   if (!p.kernel) ... p.refusals names the rows that refused and their reasons
//   if (Fault f = p.kernel->run(stream, inputs, outputs)) ...   // per request: no lookup, no allocation
//
// The engine knows Backend, Kernel and OpDesc; nothing in runtime/ knows which backend it uses.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/constant_data.h"
#include "kernels/mutex.h"
#include "kernels/op.h"
#include "kernels/tensor.h"

namespace serin::kernels {

/// One operand as known when a kernel is prepared.
struct TensorDesc {
  DType dtype = DType::kUndefined;
  Shape shape;            ///< exact, or the upper bound if `bounded`
  bool bounded = false;   ///< the shape of a run may be smaller: read it from the view, not from here
  ConstantData constant;  ///< the elements, if they are known at load (a weight); available during prepare() only
  /// Identity of that data within the model: the key under which its packed forms are shared (0: not shared).
  uint64_t constant_id = 0;
};

struct OpDesc {
  Op op;
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
};

/// The error of a run, in words ("index 12 is out of range for axis 0 of size 10"); nothing if there is none.
using Fault = std::optional<std::string>;

class Workers;  // kernels/cpu/parallel.h
class Device;   // kernels/device.h

/// An error that a device kernel found in its operands after the host had continued; step 0: no error.
struct DeviceFault {
  int64_t detail = 0;  ///< for Kernel::explain
  int32_t step = 0;    ///< Stream::step
};

/// The place where work is enqueued. On a CPU: the calling thread, with a scratch region that the plan reserved. On a device: a queue that
/// runs behind the host.
struct Stream {
  /// At least Kernel::scratch_bytes() of the current kernel, 64-byte aligned.
  std::byte* scratch = nullptr;
  Workers* workers = nullptr;  ///< PrepareContext::threads of them, including the caller; null: only the caller
  void* queue = nullptr;       ///< of a device: the stream its kernels run on (cudaStream_t); null on a CPU
  /// In the device's memory: the first fault of a run, or the last of several; null: faults are not read.
  DeviceFault* fault = nullptr;
  int32_t step = 0;  ///< the number of this kernel's step in a fault; 1 or more
};

/// A prepared operator. Immutable after prepare(): run() may be called from several threads, each with its own Stream and buffers.
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Inputs and outputs are in the order of the OpDesc. A constant that the kernel packed has data == nullptr. Kernels with bounded outputs
  /// set the true shape in outputs[i].shape. The host does not wait for a device kernel, which instead gets one more output: i64, for the
  /// size of each. An output without a size bound has no memory at first: the kernel sets its shape and is called again with that much
  /// memory.
  virtual Fault run(Stream& stream, std::span<const TensorView> inputs, std::span<TensorView> outputs) const = 0;

  /// The meaning of `detail` in a DeviceFault of this kernel, in words.
  virtual std::string explain(int64_t detail) const { return std::to_string(detail); }

  virtual size_t scratch_bytes() const { return 0; }
  /// A more precise name if the row chooses among several ("onednn:brgconv:avx512_core"); empty: the row's name is sufficient.
  virtual std::string_view name() const { return {}; }
  /// Bit i set: input i's constant was packed (or is not needed) and the plain data may be released.
  virtual uint32_t packed_inputs() const { return 0; }
};

/// Weights in the layout that a kernel needs, shared by every plan and instance of one model. Thread-safe.
class PackedWeights {
 public:
  struct Buffer {
    Buffer(std::byte* memory, size_t size, std::function<void(std::byte*, size_t)> release);
    explicit Buffer(size_t size);  ///< in the host's memory
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    std::byte* data;
    size_t bytes;
    std::function<void(std::byte*, size_t)> release;
  };

  virtual ~PackedWeights() = default;

  /// The buffer packed under (id, layout). If there is none, calls `pack` once, on a new buffer of `bytes`. id 0 is never shared. Different
  /// buffers may be packed at the same time; a caller that needs one being packed waits for it. Virtual so that a plugin can call it
  /// without linking against this library.
  virtual std::shared_ptr<const Buffer> get(uint64_t id, std::string_view layout, size_t bytes,
                                            const std::function<void(std::byte*)>& pack);
  /// Bytes of the buffers that a kernel still uses.
  size_t bytes() const;

 protected:
  /// A new buffer of `bytes`, filled by `pack` in the host's memory. Throws std::bad_alloc.
  virtual std::shared_ptr<const Buffer> make(size_t bytes, const std::function<void(std::byte*)>& pack);

 private:
  using Key = std::pair<uint64_t, std::string>;
  mutable Mutex mutex_;
  Condition packed_;
  std::set<Key> in_work_ SERIN_GUARDED_BY(mutex_);
  std::map<Key, std::weak_ptr<const Buffer>> shared_ SERIN_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<const Buffer>> private_ SERIN_GUARDED_BY(mutex_);
};

struct PrepareContext {
  PackedWeights* weights = nullptr;  ///< required
  int threads = 1;                   ///< the calling thread's number of cores; some libraries fix it at preparation
  /// Products of f32 may round their operands to ten bits of fraction if the device multiplies those faster.
  bool tf32 = false;
};

struct Refusal {
  std::string_view kernel;
  std::string reason;
};

struct Prepared {
  std::unique_ptr<Kernel> kernel;  ///< null: no row accepted
  std::string_view
      /// Valid while kernel and backend exist: the chosen row, e.g. "onednn:brgconv:avx512_core", "softmax_f32_avx512", "ref".
      name;
  std::vector<Refusal> refusals;  ///< the rows above it that refused, with reasons (for `serin inspect --explain`)
};

/// One row of a table: returns a kernel, or null with the reason in `why`.
struct KernelRow {
  std::string name;
  std::function<std::unique_ptr<Kernel>(const OpDesc&, PrepareContext&, std::string& why)> prepare;
  /// If it chooses among others: those, for callers that inspect each one.
  std::vector<KernelRow> contenders = {};
};

/// For each operator kind (index into Op) the rows in order of preference; the last one is the reference kernel.
using KernelTable = std::array<std::vector<KernelRow>, std::variant_size_v<Op>>;

class Backend {
 public:
  Backend(std::string name, KernelTable table, int64_t channel_block = 0, bool (*knows_generic)(std::string_view) = nullptr)
      : name_(std::move(name)), table_(std::move(table)), channel_block_(channel_block), knows_(knows_generic) {}
  /// Kernels that work only in the memory of `device`. An operator may have no kernel here; it then runs elsewhere.
  Backend(std::string name, KernelTable table, std::shared_ptr<Device> device)
      : name_(std::move(name)), table_(std::move(table)), channel_block_(0), knows_(nullptr), device_(std::move(device)) {}
  const std::string& name() const { return name_; }
  Device* device() const { return device_.get(); }  ///< null: ordinary memory
  Prepared prepare(const OpDesc& desc, PrepareContext& context) const;
  const KernelTable& table() const { return table_; }
  /// Channels of a block, the layout in which Conv and Pool are fastest (kernels::ChannelBlocks); 0: plain tensors are.
  int64_t channel_block() const { return channel_block_; }
  /// Whether there is a kernel for kernels::Generic of that name; only prepare() decides about operands.
  bool knows(std::string_view generic) const { return knows_ && knows_(generic); }

 private:
  std::string name_;
  KernelTable table_;
  int64_t channel_block_;
  bool (*knows_)(std::string_view);
  std::shared_ptr<Device> device_;
};

/// Instruction sets the CPU kernels are compiled for, in ascending order; the best one of the machine is chosen at run time.
enum class Isa : uint8_t { kScalar, kAvx2, kAvx512 };
Isa best_isa();
std::string_view isa_name(Isa isa);

/// Whether this machine has instructions for products of bf16 (CpuOptions::bf16).
bool multiplies_bf16();

struct CpuOptions {
  Isa isa = best_isa();  ///< `--isa` selects a lower one, for tests and bug reports
  /// libserin_onednn.so; empty: next to the program, then ../lib; "none": not loaded.
  std::string onednn_path;
  bool bf16 = false;            ///< products with weights may round their operands to bf16 if the machine multiplies bf16
  bool reference_only = false;  ///< every operator on its ref kernel: the oracle
};

/// The CPU backend: oneDNN (if its plugin is found) for Conv and MatMul, our vector kernels for the rest, ref at the end of each row.
/// `note` describes what was loaded, e.g. "cpu avx512, oneDNN 3.2.0" or "cpu avx2, no oneDNN: libserin_onednn.so: cannot open ...".
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options, std::string* note = nullptr);

}  // namespace serin::kernels
