// fault_kernel.h: a kernel that writes to address 16, for every device since sm_75.
#pragma once

namespace serin::test {

constexpr char kFaultKernel[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry fault() {
  .reg .b64 %at;
  .reg .b32 %value;
  mov.u64 %at, 16;
  mov.u32 %value, 1;
  st.global.u32 [%at], %value;
  ret;
}
)";

}  // namespace serin::test
