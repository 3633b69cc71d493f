// pointwise.cc: a program of functions of single elements over one tile of y after the other.
//
// Each step is a call of a vector loop on a tile; between the steps values lie in buffers of one tile that stay in the first cache, so that memory is read
// once for each input and written once. An input is read where it lies where it is dense over the tile or one value; else its part is spread into a buffer
// first. The axes are collapsed as far as all inputs allow: where the innermost one is long a tile is a part of it, where it is short a tile is several runs.

#include "kernels/pointwise.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/image.h"
#include "kernels/cpu/parallel.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kTile = 1024;
constexpr int64_t kLongRun = 512;           // from here on a tile that ends with a run pays
constexpr int64_t kWorthSharing = 1 << 15;  // elements of y
using Space = Collapsed<Pointwise::kMaxInputs>;

/// A value over one tile: `step` 0 where it is one element.
struct Operand {
  const void* data;
  int64_t step;
  const float* floats() const { return static_cast<const float*>(data); }
};

/// A step with its loop. `buffer`: where its result goes; the last one's is y.
struct Call {
  UnaryLoop unary = nullptr;
  BinaryLoop binary = nullptr;
  float alpha = 0.f, beta = 0.f;
  std::array<int32_t, 3> operands{};
  size_t buffer = 0;
};

/// Goes through the runs along the innermost axis with the offset of each input.
class Runs {
 public:
  Runs(const Space& space, int64_t first) : space_(space) {
    for (size_t axis = last(); axis-- > 0; first /= space.shape[axis]) {
      index_[axis] = first % space.shape[axis];
      for (size_t k = 0; k < Pointwise::kMaxInputs; ++k) offset_[k] += index_[axis] * space.strides[k][axis];
    }
  }
  int64_t offset(size_t input) const { return offset_[input]; }
  void next() {
    for (size_t axis = last(); axis-- > 0;) {
      for (size_t k = 0; k < Pointwise::kMaxInputs; ++k) offset_[k] += space_.strides[k][axis];
      if (++index_[axis] < space_.shape[axis]) return;
      for (size_t k = 0; k < Pointwise::kMaxInputs; ++k) offset_[k] -= space_.strides[k][axis] * space_.shape[axis];
      index_[axis] = 0;
    }
  }

 private:
  size_t last() const { return space_.shape.rank() - 1; }
  const Space& space_;
  Strides index_{};
  std::array<int64_t, Pointwise::kMaxInputs> offset_{};
};

/// The same run `times` over, written behind itself.
void repeat(std::byte* run, size_t bytes, int64_t times) {
  const size_t whole = bytes * static_cast<size_t>(times);
  for (size_t done = bytes; done < whole; done *= 2) std::memcpy(run + done, run, std::min(done, whole - done));
}

template <class T>
void spread_run(const std::byte* from, int64_t step, std::byte* to, int64_t n) {
  if (step == 0)
    std::fill_n(reinterpret_cast<T*>(to), n, *reinterpret_cast<const T*>(from));
  else
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
}

class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(const Simd& simd, const OpDesc& desc, int workers) : select_(simd.image->select), workers_(static_cast<size_t>(workers)) {
    const Shape& y = desc.outputs[0].shape;
    std::array<Strides, Pointwise::kMaxInputs> strides;
    strides.fill(row_major_strides(y));  // of inputs that are not there: in nobody's way
    for (size_t k = 0; k < desc.inputs.size(); ++k) {
      strides[k] = broadcast_strides(desc.inputs[k].shape, y);
      widths_.push_back(dtype_size(desc.inputs[k].dtype));
      dense_.push_back(desc.inputs[k].shape.elements() == y.elements());
    }
    space_ = collapse<Pointwise::kMaxInputs>(y, strides);
    run_ = space_.shape.back();
    runs_ = y.elements() / std::max<int64_t>(run_, 1);
    const bool long_runs = run_ >= kLongRun;
    parts_ = long_runs ? (run_ + kTile - 1) / kTile : 1;
    runs_of_tile_ = long_runs ? 1 : std::max<int64_t>(1, kTile / std::max<int64_t>(run_, 1));
    for (size_t k = 0; k < widths_.size(); ++k) {
      const std::span<const int64_t> outer(space_.strides[k].data(), space_.shape.rank() - 1);
      const bool same = std::ranges::all_of(outer, [](int64_t stride) { return stride == 0; });
      same_runs_.push_back(same);
      spread_.push_back(!long_runs && !dense_[k] && desc.inputs[k].shape.elements() != 1);
    }
  }

  /// Makes the calls, with a buffer for each result that is free while the result is needed. False: a function has no vector code.
  bool compile(const Simd& simd, const std::vector<Pointwise::Step>& steps) {
    const size_t inputs = widths_.size();
    std::vector<size_t> last_use(inputs + steps.size(), 0);
    for (size_t i = 0; i < steps.size(); ++i) {
      for (size_t k = 0; k < operand_count(steps[i]); ++k) last_use[static_cast<size_t>(steps[i].operands[k])] = i;
    }
    std::vector<size_t> busy_until;  // by buffer: the step that reads it last
    for (size_t i = 0; i < steps.size(); ++i) {
      Call call{.operands = steps[i].operands};
      if (const auto* unary = std::get_if<Unary>(&steps[i].function)) {
        call.unary = simd.unary(unary->fn);
        call.alpha = unary->alpha;
        call.beta = unary->beta;
        if (!call.unary) return false;
      } else if (const auto* binary = std::get_if<Binary>(&steps[i].function)) {
        call.binary = simd.binary(binary->fn);
        if (!call.binary) return false;
      }
      const auto free = std::ranges::find_if(busy_until, [i](size_t until) { return until < i; });
      call.buffer = static_cast<size_t>(free - busy_until.begin());
      if (free == busy_until.end()) busy_until.push_back(0);
      busy_until[call.buffer] = last_use[inputs + i];
      calls_.push_back(call);
    }
    buffers_ = busy_until.size();
    return true;
  }

  size_t scratch_bytes() const override { return workers_ * (buffers_ + widths_.size()) * kTileBytes; }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const int64_t tiles = (runs_ + runs_of_tile_ - 1) / runs_of_tile_ * parts_;
    if (out[0].elements() == 0) return kOk;
    const bool share = stream.workers && runs_ * run_ >= kWorthSharing;
    const int64_t tasks = share ? std::min<int64_t>(tiles, 16) : 1;
    parallel_for(stream, tasks, [&](int64_t task, int worker) {
      std::byte* scratch = stream.scratch + static_cast<size_t>(worker) * (buffers_ + widths_.size()) * kTileBytes;
      const int64_t begin = tiles * task / tasks, end = tiles * (task + 1) / tasks;
      for (int64_t tile = begin; tile < end; ++tile) run_tile(tile, tile == begin, in, out[0].as<float>(), scratch);
    });
    return kOk;
  }

 private:
  static constexpr size_t kTileBytes =
      kTile * sizeof(float) + 256;  // not a power of two, which would put all buffers in the same places of the cache

  /// `fresh`: nothing is in the scratch yet.
  void run_tile(int64_t tile, bool fresh, Inputs in, float* y, std::byte* scratch) const {
    const int64_t first = tile / parts_ * runs_of_tile_, begin = tile % parts_ * kTile;
    const int64_t runs = std::min(runs_of_tile_, runs_ - first), n = parts_ > 1 ? std::min(kTile, run_ - begin) : runs * run_;
    std::array<Operand, Pointwise::kMaxInputs + Pointwise::kMaxSteps> values;
    std::byte* const spread = scratch + buffers_ * kTileBytes;
    for (size_t k = 0; k < widths_.size(); ++k) {
      const std::byte* data = in[k].as<std::byte>();
      const int64_t step = space_.strides[k][space_.shape.rank() - 1];
      if (dense_[k]) {
        values[k] = {data + static_cast<size_t>(first * run_ + begin) * widths_[k], 1};
      } else if (spread_[k]) {
        if (fresh || !same_runs_[k]) spread_input(k, data, first, runs, spread + k * kTileBytes);
        values[k] = {spread + k * kTileBytes, 1};
      } else {
        const int64_t run = same_runs_[k] ? 0 : Runs(space_, first).offset(k);
        values[k] = {data + static_cast<size_t>(run + begin * step) * widths_[k], step};
      }
    }
    float* const to = y + first * run_ + begin;
    for (size_t i = 0; i < calls_.size(); ++i) {
      void* result = i + 1 == calls_.size() ? static_cast<void*>(to) : scratch + calls_[i].buffer * kTileBytes;
      call(calls_[i], values, result, n);
      values[widths_.size() + i] = {result, 1};
    }
  }

  void call(const Call& call, const auto& values, void* y, int64_t n) const {
    const auto operand = [&](size_t i) { return values[static_cast<size_t>(call.operands[i])]; };
    const Operand a = operand(0);
    if (call.unary && a.step == 0) {
      call.unary(a.floats(), static_cast<float*>(y), 1, call.alpha, call.beta);
      return std::fill_n(static_cast<float*>(y) + 1, n - 1, *static_cast<float*>(y)), void();
    }
    if (call.unary) return call.unary(a.floats(), static_cast<float*>(y), n, call.alpha, call.beta);
    const Operand b = operand(1);
    if (call.binary) return call.binary(a.floats(), a.step == 0, b.floats(), b.step == 0, y, n);
    const Operand c = operand(2);
    select_(static_cast<const bool*>(a.data), a.step, b.floats(), b.step, c.floats(), c.step, static_cast<float*>(y), n);
  }

  /// `runs` runs from `first` on, each of which is dense or one value; equal neighbours are copied at once.
  void spread_input(size_t k, const std::byte* data, int64_t first, int64_t runs, std::byte* to) const {
    const size_t last = space_.shape.rank() - 1, width = widths_[k], run_bytes = static_cast<size_t>(run_) * width;
    const int64_t step = space_.strides[k][last];
    const bool equal_neighbours = last > 0 && space_.strides[k][last - 1] == 0;
    Runs at(space_, first);
    for (int64_t i = 0; i < runs;) {
      const std::byte* from = data + static_cast<size_t>(at.offset(k)) * width;
      width == 1 ? spread_run<uint8_t>(from, step, to, run_) : spread_run<float>(from, step, to, run_);
      int64_t same = 1;
      if (equal_neighbours) same = std::min(runs - i, space_.shape[last - 1] - (first + i) % space_.shape[last - 1]);
      repeat(to, run_bytes, same);
      to += run_bytes * static_cast<size_t>(same);
      i += same;
      for (int64_t skipped = 0; skipped < same; ++skipped) at.next();
    }
  }

  decltype(ImageLoops::select) select_;
  size_t workers_;
  std::vector<size_t> widths_;   // by input: bytes of an element
  std::vector<bool> dense_;      // by input: of y's shape
  std::vector<bool> same_runs_;  // by input: shows the same to every run
  std::vector<bool> spread_;     // by input: goes through a buffer
  Space space_;
  int64_t run_ = 0, runs_ = 0;            // y is `runs_` times `run_`
  int64_t parts_ = 1, runs_of_tile_ = 1;  // tiles of a run, or runs of a tile
  std::vector<Call> calls_;
  size_t buffers_ = 0;
};

}  // namespace

Prepared pointwise(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  if (is_bounded(desc)) return refuse(why, "shapes that the data decides");
  if (!pointwise_types(desc, why)) return nullptr;
  const auto is_half = [](const TensorDesc& tensor) { return dtype_size(tensor.dtype) == 2; };
  if (is_half(desc.outputs[0]) || std::ranges::any_of(desc.inputs, is_half)) return refuse(why, "no loops for 16-bit floats");
  auto kernel = std::make_unique<PointwiseKernel>(simd, desc, std::max(1, context.threads));
  if (!kernel->compile(simd, std::get<Pointwise>(desc.op).steps)) return refuse(why, "no vector code for one of the functions");
  return kernel;
}

}  // namespace serin::kernels::cpu
