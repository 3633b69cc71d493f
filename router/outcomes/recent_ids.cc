#include "router/outcomes/recent_ids.h"

#include <algorithm>
#include <charconv>

#include "router/outcomes/assignment.h"

namespace serin::router {
namespace {

constexpr size_t kDigits = 16;

}  // namespace

RecentIds::Added RecentIds::add(uint64_t id) {
  if (known_.contains(id)) return Added::kKnown;
  ring_.resize(kChunk * kChunks);
  uint64_t& place = ring_[total_ % ring_.size()];
  if (total_ >= ring_.size()) {
    if (place == of_user(place)) return Added::kNoRoom;
    known_.erase(place);
  }
  ++total_;
  known_.insert(id);
  place = id;
  return Added::kNew;
}

std::string RecentIds::chunk(uint64_t number) const {
  std::string digits;
  for (uint64_t i = number * kChunk; i < std::min(total_, (number + 1) * kChunk); ++i) append_id(digits, ring_[i % ring_.size()]);
  return digits;
}

void RecentIds::restore(uint64_t total) {
  known_.clear();
  ring_.assign(total > 0 ? kChunk * kChunks : 0, 0);
  total_ = total;
}

bool RecentIds::restore_chunk(uint64_t number, std::string_view digits) {
  const uint64_t begin = number * kChunk, end = std::min(total_, begin + kChunk);
  if (begin > end || digits.size() != (end - begin) * kDigits) return false;
  for (uint64_t i = begin; i < end; ++i) {
    uint64_t id = 0;
    const char* from = digits.data() + (i - begin) * kDigits;
    if (std::from_chars(from, from + kDigits, id, 16).ptr != from + kDigits) return false;
    ring_[i % ring_.size()] = id;
    known_.insert(id);
  }
  return true;
}

}  // namespace serin::router
