#include "router/rollout/cold_start.h"

#include "router/rollout/representative.h"

namespace serin::rollout {
namespace {

constexpr uint64_t kForgotten = 1000;  // answers without one of a cold endpoint: it is gone

}  // namespace

void ColdStart::answered(uint32_t endpoint) {
  const size_t index = endpoint_slot(endpoint);
  if (index >= answers_.size()) answers_.resize(index + 1);
  const uint64_t answers = ++answers_[index];
  ++total_;
  std::erase_if(cold_, [&](const Cold& cold) { return cold.endpoint == index || total_ - cold.last > kForgotten; });
  if (answers <= skip_)
    cold_.push_back({index, total_});
  else
    any_warm_ = true;
}

bool ColdStart::is_cold(uint32_t endpoint) const {
  const size_t index = endpoint_slot(endpoint);
  return index >= answers_.size() || answers_[index] <= skip_;
}

}  // namespace serin::rollout
