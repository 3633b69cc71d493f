// on_device.cc: all that a kernel touches lies in one region of the device's memory, sentinels between. The host keeps a copy of the region; what the kernel
// may write is taken out of the comparison afterwards, all else must be the same byte for byte: inputs, too.

#include "tests/gpu/on_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/device_weights.h"
#include "tests/gpu/device_under_test.h"

namespace serin::kernels::test {

namespace {

constexpr std::byte kSentinel{0xA5};
constexpr size_t kAlign = 256;  // as Device::allocate does

struct Region {
  std::vector<std::byte> bytes;
  std::vector<size_t> inputs, outputs;  // where each begins
  size_t scratch = 0, fault = 0;
};

size_t bytes_of(const Tensor& tensor) { return static_cast<size_t>(tensor.shape().elements()) * dtype_size(tensor.dtype()); }

/// Room for `bytes` behind a sentinel, `shift` bytes behind a multiple of kAlign; where it begins.
size_t add(Region& region, size_t bytes, const void* data = nullptr, size_t shift = 0) {
  const size_t begin = region.bytes.size() + kAlign + shift;
  region.bytes.resize((begin + bytes + kAlign - 1) / kAlign * kAlign, kSentinel);
  if (data && bytes) std::memcpy(region.bytes.data() + begin, data, bytes);
  return begin;
}

Region lay_out(const Kernel& kernel, const Case& c, const std::vector<Tensor>& outputs, bool shifted) {
  Region region;
  const auto shift = [shifted](const Tensor& tensor) { return shifted ? dtype_size(tensor.dtype()) : 0; };
  for (const Tensor& input : c.inputs) region.inputs.push_back(add(region, bytes_of(input), input.view().data, shift(input)));
  for (const Tensor& output : outputs) region.outputs.push_back(add(region, bytes_of(output), nullptr, shift(output)));
  region.scratch = add(region, kernel.scratch_bytes());
  const DeviceFault none;
  region.fault = add(region, sizeof none, &none);
  add(region, 0);
  return region;
}

/// `after`: the region as the kernel left it.
Fault run_in(std::byte* memory, Queue& queue, const Region& region, const Kernel& kernel, std::vector<TensorView>& in,
             std::vector<TensorView>& out, std::vector<std::byte>& after) {
  for (size_t i = 0; i < in.size(); ++i) in[i].data = kernel.packed_inputs() >> i & 1u ? nullptr : memory + region.inputs[i];
  for (size_t i = 0; i < out.size(); ++i) out[i].data = memory + region.outputs[i];
  Stream stream{.scratch = memory + region.scratch,
                .queue = queue.native(),
                .fault = reinterpret_cast<DeviceFault*>(memory + region.fault),
                .step = 7};
  Fault fault = queue.copy(memory, region.bytes.data(), region.bytes.size());
  if (!fault) fault = kernel.run(stream, in, out);
  if (!fault) fault = queue.copy(after.data(), memory, after.size());
  Fault finished = queue.finish();
  return fault ? fault : finished;
}

/// Where a product is stored in 16 bits before another kernel adds bias and residual and activates, it is rounded once more: by half of the spacing of a sum that
/// may be several times what the residual leaves of it. So the error is one of the largest element, not of each.
Tolerance tolerance_of(const Kernel& kernel, DType dtype, Tolerance of_one_rounding) {
  const bool rounds_twice = kernel.name().ends_with("+conv_finish_cuda") || kernel.name().ends_with("+unary_cuda");
  const double spacing = dtype == DType::kFloat16 ? 0x1p-10 : dtype == DType::kBFloat16 ? 0x1p-7 : 0;
  if (!rounds_twice) return of_one_rounding;
  return {of_one_rounding.relative, std::max(of_one_rounding.absolute, spacing)};
}

}  // namespace

std::vector<Tensor> run_on_device(Device& device, const Kernel& kernel, const Case& c, DeviceFault* fault, std::optional<size_t> decided,
                                  bool shifted) {
  std::vector<Tensor> outputs;
  outputs.reserve(c.outputs.size() + 1);
  for (const Output& output : c.outputs) outputs.emplace_back(output.dtype, output.shape);
  if (decided) outputs.emplace_back(DType::kInt64, Shape{static_cast<int64_t>(c.outputs.size())});
  std::vector<TensorView> in, out;
  in.reserve(c.inputs.size());
  out.reserve(outputs.size());
  for (const Tensor& input : c.inputs) in.push_back(input.view());
  for (const Tensor& output : outputs) out.push_back(output.view());

  device.make_current();
  Region region = lay_out(kernel, c, outputs, shifted);
  std::vector<std::byte> after(region.bytes.size());
  std::byte* const memory = device.allocate(region.bytes.size());
  const std::unique_ptr<Queue> queue = device.make_queue();
  Fault failure = memory && queue ? run_in(memory, *queue, region, kernel, in, out, after) : device.lost().value_or("no memory");
  if (memory) device.release(memory);
  if (failure) {
    ADD_FAILURE() << c.str() << ": " << *failure;
    return outputs;
  }

  const auto take = [&](void* to, size_t at, size_t bytes) {
    if (bytes) std::memcpy(to, after.data() + at, bytes);
    std::memcpy(region.bytes.data() + at, after.data() + at, bytes);
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    take(outputs[i].view().data, region.outputs[i], bytes_of(outputs[i]));
    outputs[i].set_shape(out[i].shape);
  }
  if (decided) {
    Shape shape = outputs[0].shape();
    shape[*decided] = outputs.back().values<int64_t>()[0];
    EXPECT_LE(shape.elements(), outputs[0].shape().elements()) << c.str() << ": is larger than its bound";
    outputs.pop_back();
    outputs[0].set_shape(shape);
  }
  DeviceFault found;
  take(&found, region.fault, sizeof found);
  std::memcpy(region.bytes.data() + region.scratch, after.data() + region.scratch, kernel.scratch_bytes());
  EXPECT_TRUE(region.bytes == after) << c.str() << ": wrote where it must not";
  if (fault)
    *fault = found;
  else
    EXPECT_EQ(found.step, 0) << c.str() << ": " << kernel.explain(found.detail);
  return outputs;
}

const Backend& device_backend() {
  static const auto backend = serin::test::open_device();
  return *backend;
}

std::vector<const KernelRow*> each_of(const std::vector<KernelRow>& rows) {
  std::vector<const KernelRow*> all;
  for (const KernelRow& row : rows) {
    const auto within = row.contenders.empty() ? std::vector{&row} : each_of(row.contenders);
    all.insert(all.end(), within.begin(), within.end());
  }
  return all;
}

void expect_agrees(const Case& c, Tolerance tolerance, std::optional<size_t> decided) {
  expect_rows_agree(device_backend().table()[c.op.index()], c, tolerance, decided);
}

void expect_rows_agree(const std::vector<KernelRow>& rows, const Case& c, Tolerance tolerance, std::optional<size_t> decided) {
  const std::vector<Tensor> expected = run_reference(c);
  Device& device = *device_backend().device();
  int accepted = 0;
  for (const KernelRow* const each : each_of(rows)) {
    const KernelRow& row = *each;
    DeviceWeights weights(device);
    PrepareContext context{&weights};
    std::string why;
    const auto kernel = row.prepare(c.describe(), context, why);
    if (!kernel) {
      const bool may_be_for_another = std::holds_alternative<Generic>(c.op);
      EXPECT_TRUE(!why.empty() || may_be_for_another) << row.name << " refused " << c.str() << " without a reason";
      continue;
    }
    ++accepted;
    ASSERT_FALSE(weights.upload());
    for (const bool shifted : {false, true}) {
      const std::vector<Tensor> actual = run_on_device(device, *kernel, c, nullptr, decided, shifted);
      const std::string what = row.name + (shifted ? " (operands at odd addresses): " : ": ") + c.str();
      for (size_t i = 0; i < actual.size(); ++i)
        expect_near(actual[i], expected[i], tolerance_of(*kernel, actual[i].dtype(), tolerance), what);
    }
  }
  EXPECT_GT(accepted, 0) << "no row takes " << c.str();
}

}  // namespace serin::kernels::test
