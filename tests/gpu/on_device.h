// on_device.h: harness.h's run_kernel for kernels of a device.
#pragma once

#include <optional>
#include <vector>

#include "kernels/device.h"
#include "tests/kernels/harness.h"

namespace serin::kernels::test {

/// Runs a kernel in the memory of `device`, where nothing may change but the outputs and the kernel's scratch. `fault` receives what the kernel finds wrong
/// with its operands; without it, that fails the test. `decided`: the axis of the result whose size the data decides; the case's is the bound. `shifted`: operands
/// begin one element behind a multiple of 256 bytes, as parts of others may.
std::vector<Tensor> run_on_device(Device& device, const Kernel& kernel, const Case& c, DeviceFault* fault = nullptr,
                                  std::optional<size_t> decided = {}, bool shifted = false);

/// The backend that is tested; lives as long as the program.
const Backend& device_backend();

/// The rows of a table, and in place of each that chooses among others those.
std::vector<const KernelRow*> each_of(const std::vector<KernelRow>& rows);

/// The device's rows have no reference at their end: each, chosen or not, must agree with the reference, wherever its operands begin, and at least one must accept.
/// One that consists of two kernels may round to 16 bits twice.
void expect_agrees(const Case& c, Tolerance tolerance = {}, std::optional<size_t> decided = {});
void expect_rows_agree(const std::vector<KernelRow>& rows, const Case& c, Tolerance tolerance = {}, std::optional<size_t> decided = {});

}  // namespace serin::kernels::test
