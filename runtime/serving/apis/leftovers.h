// leftovers.h: an object pool of one io thread: requests reuse the memory of earlier ones, so that a steady stream allocates nothing.
#pragma once

#include <utility>
#include <vector>

#include "runtime/base/recycler.h"
#include "runtime/serving/apis/inference.h"

namespace serin::serving {

struct Leftovers {
  Recycler<Inference> inferences;
  Recycler<Job> jobs;

  /// Returns a request to decode into.
  protocol::InferRequest take_request() {
    if (requests_.empty()) return {};
    protocol::InferRequest taken = std::move(requests_.back());
    requests_.pop_back();
    return taken;
  }
  void give(protocol::InferRequest over) {
    over.clear();
    if (requests_.size() < Recycler<Job>::kMost) requests_.push_back(std::move(over));
  }

 private:
  std::vector<protocol::InferRequest> requests_;
};

}  // namespace serin::serving
