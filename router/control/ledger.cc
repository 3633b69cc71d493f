#include "router/control/ledger.h"

#include <fmt/format.h>

namespace serin::router {

void Ledger::note(store::HistoryEntry entry) {
  if (history_.size() < store::kHistoryLimit) history_.push_back(std::move(entry));
}

void Ledger::note(store::VerdictEntry verdict) {
  if (verdicts_.size() < store::kVerdictLimit) verdicts_.push_back(std::move(verdict));
}

Status Ledger::check() const {
  if (!error_) return {};
  return Error{Code::kUnavailable, fmt::format("the store cannot be written ({}); until it can, weights only fall", error_->message)};
}

Status Ledger::outcome(uint64_t change) const {
  if (saved_ >= change) return {};
  return Error{Code::kUnavailable,
               fmt::format("accepted, but the store cannot be written ({}); no weight rises until it can", error_ ? error_->message : "")};
}

Ledger::Batch Ledger::batch(store::ServiceRecord record, bool shared) const {
  return {.change = change_, .what = {.shared = shared, .record = std::move(record), .history = history_, .verdicts = verdicts_}};
}

void Ledger::written(const Batch& batch) {
  history_.erase(history_.begin(), history_.begin() + static_cast<std::ptrdiff_t>(batch.what.history.size()));
  verdicts_.erase(verdicts_.begin(), verdicts_.begin() + static_cast<std::ptrdiff_t>(batch.what.verdicts.size()));
  saved_ = batch.change;
  error_.reset();
}

void Ledger::failed(const Batch& batch, const Error& error) {
  failed_ = batch.change;
  error_ = error;
}

}  // namespace serin::router
