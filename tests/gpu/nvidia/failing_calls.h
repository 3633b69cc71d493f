// failing_calls.h: What a kernel of a library does when a call of it fails.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "tests/gpu/on_device.h"

namespace serin::kernels::test {

struct Survived {
  int refused = 0, right = 0;
};

/// Of the library's calls each fails once, while `prepare` makes the kernel: it is refused with a reason, or right. `calls_before_failure`: of the fake.
inline Survived expect_survives_failures(const Case& c, int& calls_before_failure,
                                         const std::function<std::unique_ptr<Kernel>(std::string& why)>& prepare) {
  const Tensor expected = run_reference(c)[0];
  Survived seen;
  for (int call = 0; call < 10000; ++call) {
    std::string why;
    calls_before_failure = call;
    const auto kernel = prepare(why);
    const bool all_done = calls_before_failure >= 0;
    calls_before_failure = -1;
    if (kernel) {
      expect_near(run_on_device(*device_backend().device(), *kernel, c)[0], expected, {.relative = 1e-3, .absolute = 1e-6},
                  "call " + std::to_string(call));
      ++seen.right;
    } else {
      EXPECT_NE(why, "") << call;
      ++seen.refused;
    }
    if (all_done) return seen;
  }
  ADD_FAILURE() << "there is no end of calls";
  return seen;
}

}  // namespace serin::kernels::test
