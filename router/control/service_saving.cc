// service_saving.cc: a service's way to the disk. What is unsaved is copied under the lock and written without it; only what was written raises a
// weight, and only where nothing newer waits.

#include <fmt/format.h>

#include "router/control/service_control.h"

namespace serin::router {

double ServiceControl::seconds(Time now) const { return std::chrono::duration<double>(now - started_).count(); }

store::RolloutRecord ServiceControl::record(Time now) const {
  store::RolloutRecord record = *last_;
  if (!rollout_) return record;
  record.report = rollout_->report();
  record.seconds = seconds(now);
  return record;
}

Result<bool> ServiceControl::save(store::Store& store, Time now) {
  bool wrote = false;
  while (const auto unsaved_now = unsaved(now)) {
    if (const Status status = store.save(unsaved_now->what); !status) {
      save_failed(*unsaved_now, status.error());
      return status.error();
    }
    saved(*unsaved_now);
    wrote = true;
  }
  return wrote;
}

std::optional<ServiceControl::Unsaved> ServiceControl::unsaved(Time now) const {
  const std::lock_guard lock(mutex_);
  if (change_ == saved_change_) return std::nullopt;
  store::Change change{.shared = leading_,
                       .record = {.service = config_.name, .stable = stable_, .epoch = epoch_},
                       .history = unsaved_history_,
                       .verdicts = unsaved_verdicts_};
  if (last_) change.record.rollout = record(now);
  return Unsaved{.change = change_, .what = std::move(change)};
}

void ServiceControl::saved(const Unsaved& unsaved) {
  const std::lock_guard lock(mutex_);
  const auto written = static_cast<std::ptrdiff_t>(unsaved.what.history.size());
  unsaved_history_.erase(unsaved_history_.begin(), unsaved_history_.begin() + written);
  unsaved_verdicts_.erase(unsaved_verdicts_.begin(), unsaved_verdicts_.begin() + static_cast<std::ptrdiff_t>(unsaved.what.verdicts.size()));
  saved_change_ = unsaved.change;
  store_error_.reset();
  if (unsaved.what.shared && routers_ > 0) agreed_ = false;              // until the others follow
  if (saved_change_ == change_ && unsaved.what.shared) apply(target());  // else something newer must be written first
  settle();
  saved_.notify_all();
}

void ServiceControl::save_failed(const Unsaved& unsaved, const Error& error) {
  const std::lock_guard lock(mutex_);
  failed_change_ = unsaved.change;
  store_error_ = error;
  saved_.notify_all();
}

Status ServiceControl::wait_until_saved(uint64_t change) {
  std::unique_lock lock(mutex_);
  saved_.wait(lock, [&] { return saved_change_ >= change || failed_change_ >= change; });
  if (saved_change_ >= change) return {};
  return Error{Code::kUnavailable, fmt::format("accepted, but the store cannot be written ({}); no weight rises until it can",
                                               store_error_ ? store_error_->message : "")};
}

}  // namespace serin::router
