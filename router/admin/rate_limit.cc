// rate_limit.cc: one token bucket for each caller. A full bucket carries no information, so full buckets are dropped when there are many.

#include "router/admin/rate_limit.h"

#include <algorithm>

namespace serin::router {
namespace {

constexpr size_t kMostBuckets = 1024;

}  // namespace

bool RateLimit::take(const std::string& caller, Time now) {
  const MutexLock lock(mutex_);
  if (buckets_.size() >= kMostBuckets && !buckets_.contains(caller)) forget_idle(now);
  Bucket& bucket = buckets_.try_emplace(caller, Bucket{burst_, now}).first->second;
  const double seconds = std::chrono::duration<double>(std::max(now, bucket.filled) - bucket.filled).count();
  bucket.left = std::min(burst_, bucket.left + rate_ * seconds);
  bucket.filled = std::max(now, bucket.filled);
  if (bucket.left < 1) return false;
  bucket.left -= 1;
  return true;
}

/// Callers from a thousand addresses within two seconds are nobody's usual clients: where none is idle all begin anew.
void RateLimit::forget_idle(Time now) {
  std::erase_if(buckets_, [&](const auto& entry) {
    return entry.second.left + rate_ * std::chrono::duration<double>(now - entry.second.filled).count() >= burst_;
  });
  if (buckets_.size() >= kMostBuckets) buckets_.clear();
}

}  // namespace serin::router
