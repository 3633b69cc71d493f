// serve_limits.h: how much a client may send to `serin serve`, and what memory that may take.
//
// Every body may have an ordinary size, and so may what is decoded from it. What bodies have beyond that comes out of one part of the memory, what is decoded out of
// another one, so that a few large requests are taken and many are told to try again.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/base/memory_budget.h"
#include "runtime/cli/commands.h"
#include "runtime/protocol/infer.h"

namespace serin::cli {

struct ServeLimits {
  struct Port {
    size_t body_bytes;
    std::string from;  ///< for who is over it
  };
  Port http, grpc, admin;
  std::shared_ptr<MemoryBudget> bodies;
  protocol::RequestLimits requests;
};

/// `memory`: that the process may use. What nobody has asked for is no larger than what could ever be taken; what somebody has is taken, one at a time.
ServeLimits serve_limits(const ServeOptions& options, size_t memory);

}  // namespace serin::cli
