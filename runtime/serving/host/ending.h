// ending.h: how a request ended, as metrics and traces count it.
#pragma once

#include <chrono>
#include <optional>

#include "runtime/base/result.h"

namespace serin::serving {

using Clock = std::chrono::steady_clock;

struct Timing {
  std::chrono::nanoseconds queue{0}, input{0}, infer{0}, output{0};

  Timing& operator+=(const Timing& other) {
    queue += other.queue;
    input += other.input;
    infer += other.infer;
    output += other.output;
    return *this;
  }
};

struct Ending {
  std::optional<Code> failure;  ///< nothing: it succeeded
  bool cached = false;          ///< computed for another request
  bool refused = false;         ///< the failure is the request's: a step before the model could not read it
  Timing timing;
};

}  // namespace serin::serving
