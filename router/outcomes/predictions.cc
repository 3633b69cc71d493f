#include "router/outcomes/predictions.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/base/number.h"
#include "runtime/base/stable_hash.h"

namespace serin::router {
namespace {

using Kind = Prediction::Kind;

constexpr size_t kMostPlaces = 1'000'000;                               // of notes
constexpr size_t kHeapBlock = 16;                                       // what malloc adds and rounds up
constexpr size_t kIndexNode = sizeof(void*) * 2 + 24 + 2 * kHeapBlock;  // of the map, with its bucket

size_t heap_bytes(const std::string& text) { return text.capacity() > std::string().capacity() ? text.capacity() + kHeapBlock : 0; }

Error nothing_to_compare(std::string_view id, std::string_view why) {
  return {Code::kFailedPrecondition, fmt::format("request_id: nothing can be said of request '{}': {}", id, why)};
}

}  // namespace

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
  if (log_ && kept_.empty())
    log_->keep_none();
  else if (log_)
    log_->keep_from(kept_.front().segment);
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
  line_.clear();
  if (const auto known = known_.find(id); known != known_.end()) {
    if (known->second->ambiguous || known->second->entry.asked == entry.asked) return;
    known->second->ambiguous = true;
    if (!log_) return;
    print_ambiguous(line_, id);
    log_->append(line_);
    return;
  }
  if (log_) print_line(line_, since_1970(now).count(), id, entry);
  Kept& kept = put(std::string(id), std::move(entry), now);
  if (log_) kept.segment = log_->append(line_);
  trim(now);
}

Predictions::Kept& Predictions::put(std::string id, Entry entry, Time at) {
  Kept& kept = kept_.emplace_back(Kept{.id = std::move(id), .entry = std::move(entry), .at = at});
  known_.emplace(kept.id, &kept);
  bytes_ += kept.bytes();
  return kept;
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
                    "it, its time is over, newer ones took its place, or the router was killed within seconds of it",
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

/// How classes are read. Those that were read otherwise are not comparable.
std::string Predictions::fingerprint() const {
  std::string text = fmt::format("{}\n{}\n{}\n", config_.output, static_cast<int>(config_.take), config_.threshold);
  for (const std::string& name : config_.names) text += name + "\n";
  return fmt::format("{:016x}", hash_text(text));
}

/// The text goes, so it is kept: each of the dozen that there are once.
void Predictions::keep_reason(std::string_view& why) {
  constexpr size_t kMostReasons = 64;
  if (reasons_.size() == kMostReasons)
    why = "its answer had no class";
  else
    why = *reasons_.emplace(why).first;
}

std::chrono::milliseconds Predictions::since_1970(Time at) const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch() + wall_clock_);
}

bool Predictions::put_line(const PredictionLog::Line& line, Time now) {
  auto parsed = parse_line(line.text);
  if (!parsed) return false;
  const auto known = known_.find(parsed->id);
  if (!parsed->entry) {
    if (known != known_.end()) known->second->ambiguous = true;  // else it has gone before its time
    return true;
  }
  const Time at = now - std::max(since_1970(now) - std::chrono::milliseconds(parsed->at_ms), std::chrono::milliseconds(0));
  trim(at);
  if (known_.contains(parsed->id)) return true;
  if (parsed->entry->prediction.kind == Kind::kUnread) keep_reason(parsed->entry->prediction.why);
  put(std::move(parsed->id), *std::move(parsed->entry), at).segment = line.segment;
  return true;
}

// The note itself has the fingerprint and the number of places. note/PLACE has the lines of a segment.

void Predictions::restore(store::Store& store, const std::string& note, Time now) {
  const auto complain = [&](std::string_view what) {
    log::warning("service '{}': outcomes of '{}': {}; labels of some earlier requests will not be known", service_, metric_, what);
  };
  const MutexLock lock(mutex_);
  if (log_) return;
  log_.emplace();
  const auto index = store.note(note);
  if (!index) return complain(index.error().message);
  const std::string text = index->value_or("");
  const size_t space = std::min(text.find(' '), text.size());
  const bool same = text.substr(0, space) == fingerprint();
  places_written_ = parse_number<uint32_t>(std::string_view(text).substr(std::min(space + 1, text.size()))).value_or(0);
  if (places_written_ > kMostPlaces) places_written_ = 0;  // nobody has written that
  std::vector<PredictionLog::Note> notes;
  for (size_t place = 0; place < places_written_; ++place) {
    auto found = store.note(fmt::format("{}/{}", note, place));
    if (!found) complain(found.error().message);
    notes.push_back({.place = place, .text = found ? found->value_or("") : ""});
  }
  const auto lines = log_->restore(std::move(notes));
  size_t bad = 0;
  for (const PredictionLog::Line& line : lines) bad += !same || put_line(line, now) ? 0 : 1;
  if (!same) {  // the note is of other classes
    places_written_ = 0;
    forgets_ = !text.empty();
  }
  if (bad > 0) complain(fmt::format("{} lines cannot be read", bad));
  if (kept_.empty()) log_->keep_none();
  trim(now);
}

Status Predictions::save(store::Store& store, const std::string& note) {
  std::vector<PredictionLog::Note> notes;
  size_t places = 0;
  {
    const MutexLock lock(mutex_);
    if (!log_) return {};
    notes = log_->unwritten();
    places = log_->places();
  }
  // A router may be killed between any two: the note never counts a place whose lines are of other classes.
  Status saved;
  if (forgets_) saved = store.set_note(note, fmt::format("{} 0", fingerprint()));
  if (saved) forgets_ = false;
  for (const PredictionLog::Note& each : notes)
    if (saved) saved = store.set_note(fmt::format("{}/{}", note, each.place), each.text);
  if (saved && places > places_written_) {
    saved = store.set_note(note, fmt::format("{} {}", fingerprint(), places));
    if (saved) places_written_ = places;
  }
  if (saved) return saved;
  const MutexLock lock(mutex_);
  log_->write_again(std::move(notes));
  return saved;
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
