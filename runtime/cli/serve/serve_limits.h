// serve_limits.h: limits how much a client may send to `serin serve` and the memory that this may take.
//
// Every body may have an ordinary size, and so may the data decoded from it. Bodies beyond that share one part of the memory, decoded data
// another. So a few large requests are accepted, and further ones are answered "try again".
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/base/memory_budget.h"
#include "runtime/cli/serve/serve_options.h"
#include "runtime/protocol/infer.h"

namespace serin::cli {

struct ServeLimits {
  struct Port {
    size_t body_bytes;
    std::string from;  ///< names the limit's origin in the error for a larger body
  };
  Port http, grpc, admin;
  std::shared_ptr<MemoryBudget> bodies;
  protocol::RequestLimits requests;
};

/// `memory`: bytes that the process may use. A default limit is no larger than the memory can ever take. An explicit limit is accepted, for
/// one request at a time.
ServeLimits serve_limits(const ServeOptions& options, size_t memory);

}  // namespace serin::cli
