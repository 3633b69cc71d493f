#include "runtime/net/tls/tls_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace serin::net {
namespace {

constexpr std::chrono::seconds kInterval{1};

}  // namespace

TlsWatch::TlsWatch(std::vector<std::shared_ptr<TlsContext>> contexts, metrics::Registry& metrics) {
  for (auto& context : contexts) {
    if (!context || context->name().empty()) continue;
    const metrics::Labels labels{{"file", context->name()}};
    std::shared_ptr<metrics::Gauge> expiry;
    if (context->expires())
      expiry = metrics.gauge("serin_tls_certificate_expiry_seconds",
                             "Time when a presented certificate, or one of its chain, expires; seconds since 1970.", labels);
    watched_.push_back(
        {.context = std::move(context),
         .expiry = std::move(expiry),
         .stale = metrics.gauge("serin_tls_certificate_stale",
                                "1 while certificate files cannot be used and the files read before stay in force.", labels)});
  }
  if (watched_.empty()) return;
  look(/*at_once=*/false);
  thread_ = std::thread([this] { run(); });
}

TlsWatch::~TlsWatch() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    wake_.notify_one();
  }
  thread_.join();
}

void TlsWatch::refresh() {
  const MutexLock lock(mutex_);
  at_once_ = true;
  wake_.notify_one();
}

void TlsWatch::run() {
  const MutexLock lock(mutex_);
  while (!ending_) {
    wake_.wait_for(mutex_, kInterval, [this]() SERIN_REQUIRES(mutex_) { return ending_ || at_once_; });
    const bool at_once = std::exchange(at_once_, false);
    if (ending_) return;
    const MutexUnlock unlocked(mutex_);
    look(at_once);
  }
}

void TlsWatch::look(bool at_once) {
  for (const Watched& each : watched_) each.context->refresh(at_once);
  for (const Watched& each : watched_) {
    // Of several contexts that show the same certificate, as a server's and that of its calls, one that is stale is enough.
    const auto stale_too = [&](const Watched& other) { return other.stale == each.stale && other.context->stale(); };
    each.stale->set(std::ranges::any_of(watched_, stale_too) ? 1 : 0);
    if (each.expiry) each.expiry->set(std::chrono::duration<double>(each.context->expires()->time_since_epoch()).count());
  }
}

}  // namespace serin::net
