#include "runtime/cli/serve/serve_limits.h"

#include <gmock/gmock.h>

namespace serin::cli {
namespace {

using testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20, kGiB = size_t{1} << 30;

TEST(ServeLimits, AnOrdinaryServerTakesOrdinaryBodies) {
  const ServeLimits limits = serve_limits({}, 16 * kGiB);
  EXPECT_EQ(limits.http.body_bytes, 64 * kMiB);
  EXPECT_EQ(limits.grpc.body_bytes, 64 * kMiB);
  EXPECT_EQ(limits.requests.tensor_bytes, 256 * kMiB) << "text widens";
  EXPECT_THAT(limits.http.from, HasSubstr("--max-body-bytes"));
}

TEST(ServeLimits, LargeBodiesEndWhereTheyCouldNeverBeTaken) {
  ServeOptions options;
  options.body_bytes = options.message_bytes = INT32_MAX;
  const ServeLimits plenty = serve_limits(options, 64 * kGiB);
  EXPECT_EQ(plenty.http.body_bytes, size_t{INT32_MAX});
  EXPECT_EQ(plenty.requests.tensor_bytes, size_t{INT32_MAX}) << "what a body holds may be taken";
  const ServeLimits little = serve_limits(options, 16 * kGiB);
  for (const ServeLimits::Port& port : {little.http, little.grpc}) {
    EXPECT_EQ(port.body_bytes, kGiB + 64 * kMiB);
    EXPECT_EQ(port.body_bytes, little.bodies->most());
    EXPECT_THAT(port.from, HasSubstr("64 MiB and a sixteenth of the 16384 MiB of memory; --max-body-bytes"));
  }
  EXPECT_EQ(little.admin.body_bytes, 64 * kMiB);
  EXPECT_EQ(little.requests.tensor_bytes, little.requests.memory->most());
}

TEST(ServeLimits, WhatSomebodyAskedForIsTakenAndStillShared) {
  ServeOptions options;
  options.max_body_bytes = options.max_message_bytes = 1'900'000'000;
  const ServeLimits limits = serve_limits(options, 4 * kGiB);
  EXPECT_EQ(limits.grpc.body_bytes, 1'900'000'000U);
  EXPECT_EQ(limits.bodies->most(), 1'900'000'000U) << "one at a time";
  EXPECT_EQ(limits.requests.memory->most(), 1'900'000'000U);
  EXPECT_EQ(limits.requests.tensor_bytes, 1'900'000'000U);
}

TEST(ServeLimits, SharedMemoryHoldsWhatAMessageOfTritonsMayHold) {
  ServeOptions options;
  options.shared_memory = true;
  EXPECT_EQ(serve_limits(options, 64 * kGiB).requests.tensor_bytes, size_t{INT32_MAX});
  EXPECT_EQ(serve_limits(options, 16 * kGiB).requests.tensor_bytes, kGiB + 64 * kMiB);
}

}  // namespace
}  // namespace serin::cli
