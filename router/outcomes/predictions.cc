#include "router/outcomes/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>

namespace serin::router {
namespace {

using Kind = Prediction::Kind;

constexpr size_t kHeapBlock = 16;                                       // what malloc adds and rounds up
constexpr size_t kIndexNode = sizeof(void*) * 2 + 24 + 2 * kHeapBlock;  // of the map, with its bucket

size_t heap_bytes(const std::string& text) { return text.capacity() > std::string().capacity() ? text.capacity() + kHeapBlock : 0; }

Error nothing_to_compare(std::string_view id, std::string_view why) {
  return {Code::kFailedPrecondition, fmt::format("request_id: nothing can be said of request '{}': {}", id, why)};
}

}  // namespace

uint64_t code_of(double number) { return std::bit_cast<uint64_t>(number + 0.0); }  // -0 is 0
uint64_t code_of(std::string_view text) { return std::hash<std::string_view>()(text); }

Predictions::Predictions(std::string service, std::string metric, const LabelConfig& config)
    : service_(std::move(service)), metric_(std::move(metric)), config_(config) {
  for (size_t i = 0; i < config_.names.size(); ++i) indices_.emplace(config_.names[i], static_cast<double>(i));
}

void Predictions::show(metrics::Registry& registry) {
  const MutexLock lock(mutex_);
  const metrics::Labels labels = {{"service", service_}, {"metric", metric_}};
  count_ = registry.gauge("serin_route_predictions", "Requests whose predicted class is kept until a label comes.", labels);
  size_ = registry.gauge("serin_route_prediction_bytes", "Memory of the requests whose predicted class is kept.", labels);
  dropped_ = registry.counter("serin_route_predictions_dropped_total",
                              "Requests whose predicted class was forgotten before its time, for want of room.", labels);
  count_->set(static_cast<double>(kept_.size()));
  size_->set(static_cast<double>(bytes_));
}

size_t Predictions::Kept::bytes() const {
  const size_t rows = entry.prediction.rows.capacity();
  return sizeof(Kept) + kIndexNode + heap_bytes(id) + heap_bytes(entry.assigned) + (rows > 0 ? rows * sizeof(uint64_t) + kHeapBlock : 0);
}

void Predictions::drop_oldest() {
  bytes_ -= kept_.front().bytes();
  known_.erase(kept_.front().id);
  kept_.pop_front();
}

void Predictions::trim(Time now) {
  while (!kept_.empty() && kept_.front().at + config_.keep < now) drop_oldest();
  while (kept_.size() > config_.requests || bytes_ > config_.bytes) {
    drop_oldest();
    if (dropped_) dropped_->add();
  }
  if (!count_) return;
  count_->set(static_cast<double>(kept_.size()));
  size_->set(static_cast<double>(bytes_));
}

void Predictions::add(std::string_view id, Entry entry, Time now) {
  const MutexLock lock(mutex_);
  trim(now);  // first: an ID of long ago is free again
  if (const auto known = known_.find(id); known != known_.end()) {
    known->second->ambiguous |= known->second->entry.asked != entry.asked;
    return;
  }
  Kept& kept = kept_.emplace_back(Kept{.id = std::string(id), .entry = std::move(entry), .at = now});
  known_.emplace(kept.id, &kept);
  bytes_ += kept.bytes();
  trim(now);
}

/// That of a class which the answers could have had.
Result<uint64_t> Predictions::code_in(const Prediction& prediction, const Label::value_type& label) const {
  const auto* const number = std::get_if<double>(&label);
  const auto* const text = std::get_if<std::string>(&label);
  if (prediction.kind == Kind::kTexts) {
    if (text) return code_of(*text);
    return invalid(fmt::format("label: must be a text, as the classes of the answer are, not {}", *number));
  }
  if (number) return code_of(*number);
  if (const auto index = indices_.find(*text); index != indices_.end()) return code_of(index->second);
  // An error has no kind of class. Only with names it is known which texts there are.
  if (prediction.kind == Kind::kFailed && config_.names.empty()) return code_of(*text);
  if (config_.names.empty())
    return invalid(
        fmt::format("label: must be a number, as the classes of the answer are, or one of `names` in router.yaml, not '{}'", *text));
  return invalid(fmt::format("label: '{}' is none of the `names` in router.yaml", *text));
}

Result<Judged> Predictions::judge(std::string_view id, const Label& label, Time now) const {
  const MutexLock lock(mutex_);
  const auto known = known_.find(id);
  if (known == known_.end() || known->second->at + config_.keep < now)
    return Error{
        Code::kNotFound,
        fmt::format("request_id: request '{}' is not known to this router: it was not drawn between versions, another router answered "
                    "it, its time is over, newer ones took its place, or the router has started since",
                    id)};
  const auto& [assigned, asked, prediction] = known->second->entry;
  if (known->second->ambiguous) return nothing_to_compare(id, "another request has had the same ID");
  if (prediction.kind == Kind::kUnread) return nothing_to_compare(id, prediction.why);
  std::vector<uint64_t> codes;
  codes.reserve(label.size());
  for (const auto& each : label) {
    SERIN_TRY(const uint64_t code, code_in(prediction, each));
    codes.push_back(code);
  }
  if (prediction.kind == Kind::kFailed) return Judged{.assigned = assigned, .value = 0};
  const size_t rows = prediction.rows.size();
  if (codes.size() != rows)
    return invalid(rows == 1
                       ? fmt::format("label: the answer has one row, so it needs one label, not {}", codes.size())
                       : fmt::format("label: the answer has {} rows, so it needs a list of as many labels, not {}", rows, codes.size()));
  size_t right = 0;
  for (size_t i = 0; i < rows; ++i) right += codes[i] == prediction.rows[i] ? 1 : 0;
  return Judged{.assigned = assigned, .value = static_cast<double>(right) / static_cast<double>(rows)};
}

void Predictions::forget_old(Time now) {
  const MutexLock lock(mutex_);
  trim(now);
}

std::pair<size_t, size_t> Predictions::size() const {
  const MutexLock lock(mutex_);
  return {kept_.size(), bytes_};
}

std::shared_ptr<Predictions> AllPredictions::get(const std::string& service, const std::string& metric, const LabelConfig& config,
                                                 metrics::Registry& registry) {
  std::shared_ptr<Predictions>& predictions = all_[{service, metric}];
  if (!predictions || !(predictions->config() == config)) predictions = std::make_shared<Predictions>(service, metric, config);
  predictions->show(registry);
  return predictions;
}

void AllPredictions::keep_only(std::span<const std::shared_ptr<Predictions>> used) {
  std::erase_if(all_, [&](const auto& entry) { return std::ranges::find(used, entry.second) == used.end(); });
}

}  // namespace serin::router
