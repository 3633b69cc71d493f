// every_isa.h: a fixture whose tests run once for each instruction set; one that the machine lacks is skipped and named.
//
//   class Vector : public EveryIsa {};
//   SERIN_ON_EVERY_ISA(Vector);
//   TEST_P(Vector, Softmax) { expect_match({.op = Softmax{}, ...}); }
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/harness.h"

namespace serin::kernels::test {

class EveryIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > best_isa()) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  static void expect_match(const Case& c, Tolerance tolerance = {}) { expect_rows_match_reference(backend(GetParam()), c, tolerance); }
};

}  // namespace serin::kernels::test

#define SERIN_ON_EVERY_ISA(Fixture)                                                               \
  INSTANTIATE_TEST_SUITE_P(Isa, Fixture, testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512), \
                           [](const auto& test) { return std::string(isa_name(test.param)); })
