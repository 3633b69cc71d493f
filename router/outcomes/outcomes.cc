// outcomes.cc: the notes in the store. outcomes/SERVICE/METRIC has the sums and the latest IDs, in one note, so that a crash finds both from the same
// moment. outcomes/SERVICE/METRIC/ids/SLOT has a thousand earlier IDs, and is written before the note that counts on it.
// outcomes/SERVICE/METRIC/awaited and those below it have the classes that await a label (predictions.cc).

#include "router/outcomes/outcomes.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/log.h"

namespace serin::router {
namespace {

constexpr std::chrono::seconds kBetweenSaves{2};
constexpr std::string_view kCounted = "counted", kDuplicate = "duplicate", kUnknown = "unknown", kRefused = "refused";

/// A rollout is first seen within that time of its start.
uint64_t began_ms() {
  const auto then = std::chrono::system_clock::now().time_since_epoch() - kBetweenSaves;
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(then).count());
}

constexpr auto kNameOf = [](const auto& metric) -> const std::string& { return metric.outcomes.config().name; };

Error no_outcomes(const std::string& service) {
  return {Code::kNotFound, fmt::format("service '{}' has no `outcomes` in router.yaml, or there is no such service", service)};
}

Error no_metric(const std::string& service, const std::string& metric) {
  return invalid(fmt::format("metric: service '{}' has no outcome '{}'", service, metric));
}

std::string awaited_note(const std::string& note) { return note + "/awaited"; }
std::string chunk_note(const std::string& note, uint64_t chunk) { return fmt::format("{}/ids/{}", note, RecentIds::slot_of(chunk)); }

}  // namespace

Outcomes::Outcomes(const std::vector<ServiceConfig>& services, store::Store& store, metrics::Registry& registry,
                   AllPredictions& predictions, OutcomeWatch watch)
    : store_(store), registry_(registry), watch_(std::move(watch)) {
  {
    const MutexLock lock(mutex_);
    for (const ServiceConfig& service : services) {
      if (!service.track_of.empty()) continue;
      std::vector<std::string> versions;
      versions.reserve(service.versions.size());
      for (const VersionConfig& version : service.versions) versions.push_back(version.name);
      for (const MetricConfig& metric : service.outcomes) {
        Metrics& metrics = services_[service.name];
        metrics.push_back({.outcomes = {metric, versions}, .note = fmt::format("outcomes/{}/{}", service.name, metric.name)});
        if (metric.labels) await_labels(service.name, metrics.back(), predictions.get(service.name, metric.name, *metric.labels, registry));
        load(service.name, metrics.back());
      }
    }
    if (services_.empty()) return;
  }
  writer_ = std::thread([this] { run(); });
}

/// What cannot be read is reported, and counted anew: sums that are half there would be wrong.
void Outcomes::load(const std::string& service, Metric& metric) {
  const auto complain = [&](std::string_view what) {
    log::error("service '{}': outcomes of '{}': {}; they are counted anew", service, metric.outcomes.config().name, what);
  };
  const auto note = store_.note(metric.note);
  if (!note) return complain(note.error().message);
  if (!*note) return;
  const auto restored = metric.outcomes.restore(**note);
  if (!restored) return complain(restored.error().message);
  if (!*restored) {
    metric.changed = true;
    return complain("its range has changed");
  }
  const RecentIds& ids = metric.outcomes.ids();
  metric.chunks_written = ids.full_chunks();
  for (uint64_t chunk = ids.first_chunk(); chunk < ids.full_chunks(); ++chunk) {
    const auto digits = store_.note(chunk_note(metric.note, chunk));
    if (!digits || !*digits || !metric.outcomes.restore_chunk(chunk, **digits))
      log::warning("service '{}': outcomes of '{}': some ids of earlier reports are lost: a report that comes again may count twice",
                   service, metric.outcomes.config().name);
  }
}

Result<Outcomes::Metrics*> Outcomes::find(const std::string& service) {
  const auto found = services_.find(service);
  if (found == services_.end()) return no_outcomes(service);
  return &found->second;
}

Result<bool> Outcomes::add(const std::string& service, Metrics& metrics, const OutcomeReport& report) {
  if (report.by_request()) return add_label(service, metrics, report);
  const auto metric = std::ranges::find(metrics, report.metric, kNameOf);
  if (metric == metrics.end()) return no_metric(service, report.metric);
  return add_value(service, *metric, report.assigned, report.value);
}

Result<bool> Outcomes::add_value(const std::string& service, Metric& metric, const std::string& text, double value) {
  SERIN_TRY(const Assignment assigned, parse_assignment(text));
  SERIN_TRY(const bool counted, metric.outcomes.add(assigned, value));
  if (!counted) return false;
  metric.changed = true;
  auto& counter = metric.counted[assigned.version];
  if (!counter)
    counter = registry_.counter("serin_route_outcomes_total", "Reported outcomes that were counted.",
                                {{"service", service}, {"metric", kNameOf(metric)}, {"version", assigned.version}});
  counter->add();
  return true;
}

void Outcomes::await_labels(const std::string& service, Metric& metric, std::shared_ptr<Predictions> predictions) {
  metric.predictions = std::move(predictions);
  metric.predictions->restore(store_, awaited_note(metric.note), Predictions::Time::clock::now());
  for (const std::string_view result : {kCounted, kDuplicate, kUnknown, kRefused})
    metric.labels[result] =
        registry_.counter("serin_route_labels_total", "Labels that were reported by the ID of a request, and what became of them.",
                          {{"service", service}, {"metric", kNameOf(metric)}, {"result", std::string(result)}});
}

/// The metric of that name, or the only one that has `labels`.
Result<Outcomes::Metric*> Outcomes::find_labelled(const std::string& service, Metrics& metrics, const std::string& name) {
  const auto has_labels = [](const Metric& metric) { return metric.predictions != nullptr; };
  if (!name.empty()) {
    const auto metric = std::ranges::find(metrics, name, kNameOf);
    if (metric == metrics.end()) return no_metric(service, name);
    if (!has_labels(*metric)) return invalid(fmt::format("metric: outcome '{}' has no `labels` in router.yaml", name));
    return &*metric;
  }
  const auto count = std::ranges::count_if(metrics, has_labels);
  if (count == 0) return invalid(fmt::format("request_id: no outcome of service '{}' has `labels` in router.yaml", service));
  if (count > 1) return invalid(fmt::format("metric: must be named: several outcomes of service '{}' have `labels`", service));
  return &*std::ranges::find_if(metrics, has_labels);
}

Result<bool> Outcomes::add_label(const std::string& service, Metrics& metrics, const OutcomeReport& report) {
  SERIN_TRY(Metric* const metric, find_labelled(service, metrics, report.metric));
  const auto judged = metric->predictions->judge(report.request_id, report.label, Predictions::Time::clock::now());
  const auto counted = judged ? add_value(service, *metric, judged->assigned, judged->value) : Result<bool>(judged.error());
  const bool unknown = !counted && counted.error().code == Code::kNotFound;
  metric->labels.at(counted ? (*counted ? kCounted : kDuplicate) : unknown ? kUnknown : kRefused)->add();
  return counted;
}

Outcomes::Metric* Outcomes::find(const std::string& service, const std::string& metric) {
  const auto metrics = services_.find(service);
  if (metrics == services_.end()) return nullptr;
  const auto found = std::ranges::find(metrics->second, metric, kNameOf);
  return found == metrics->second.end() ? nullptr : &*found;
}

void Outcomes::follow(std::span<const OutcomeQuestion> questions) {
  for (const OutcomeQuestion& question : questions) {
    Metric* const metric = find(question.service, question.metric);
    if (metric == nullptr) continue;
    MetricOutcomes::FollowedRollout rollout = question.rollout;
    rollout.since_ms = began_ms();
    metric->changed |= metric->outcomes.follow(rollout);
  }
}

/// The lock is not held while the rollout is asked, which has one of its own.
void Outcomes::answer(std::span<const OutcomeQuestion> questions) {
  for (const OutcomeQuestion& question : questions) {
    std::optional<rollout::OutcomeEvidence> evidence;
    {
      const MutexLock lock(mutex_);
      if (const Metric* const metric = find(question.service, question.metric))
        evidence = metric->outcomes.evidence_of(question.rollout.id);
    }
    if (evidence) watch_.answer(question, *evidence);
  }
}

Result<OutcomeReceipt> Outcomes::add(const std::string& service, std::span<const Result<OutcomeReport>> reports) {
  std::vector<OutcomeQuestion> open = questions();
  std::erase_if(open, [&](const OutcomeQuestion& question) { return question.service != service; });
  SERIN_TRY(OutcomeReceipt receipt, count(service, reports, open));
  answer(open);
  return receipt;
}

Result<OutcomeReceipt> Outcomes::count(const std::string& service, std::span<const Result<OutcomeReport>> reports,
                                       std::span<const OutcomeQuestion> questions) {
  const MutexLock lock(mutex_);
  SERIN_TRY(Metrics* const metrics, find(service));
  follow(questions);
  OutcomeReceipt receipt;
  for (size_t i = 0; i < reports.size(); ++i) {
    const auto counted = reports[i] ? add(service, *metrics, *reports[i]) : Result<bool>(reports[i].error());
    if (!counted)
      receipt.refused.push_back({.index = i, .error = counted.error().message, .code = code_name(counted.error().code)});
    else
      ++(*counted ? receipt.accepted : receipt.duplicates);
  }
  return receipt;
}

Result<OutcomesSummary> Outcomes::summary(const std::string& service) const {
  const MutexLock lock(mutex_);
  const auto found = services_.find(service);
  if (found == services_.end()) return no_outcomes(service);
  OutcomesSummary summary{.service = service};
  for (const Metric& metric : found->second) summary.metrics.push_back(metric.outcomes.summary());
  return summary;
}

Status Outcomes::reset(const std::string& service) {
  {
    const MutexLock lock(mutex_);
    SERIN_TRY(Metrics* const metrics, find(service));
    for (Metric& metric : *metrics) {
      metric.outcomes.reset();
      metric.chunks_written = 0;
      metric.changed = true;
    }
  }
  return save();
}

Status Outcomes::save() {
  const MutexLock saving(saving_);
  const Status counted = write_changed(), awaited = write_predictions();
  return counted ? awaited : counted;
}

Status Outcomes::write_predictions() {
  std::vector<std::pair<std::shared_ptr<Predictions>, std::string>> all;
  {
    const MutexLock lock(mutex_);
    for (const auto& [service, metrics] : services_)
      for (const Metric& metric : metrics)
        if (metric.predictions) all.emplace_back(metric.predictions, awaited_note(metric.note));
  }
  Status saved;
  for (const auto& [predictions, note] : all)
    if (const Status done = predictions->save(store_, note); !done) saved = done;
  return saved;
}

Status Outcomes::write_changed() {
  Notes notes;
  std::vector<Metric*> written;
  {
    const MutexLock lock(mutex_);
    for (auto& [service, metrics] : services_) {
      for (Metric& metric : metrics) {
        if (!std::exchange(metric.changed, false)) continue;
        const RecentIds& ids = metric.outcomes.ids();
        for (uint64_t chunk = std::max(metric.chunks_written, ids.first_chunk()); chunk < ids.full_chunks(); ++chunk)
          notes.emplace_back(chunk_note(metric.note, chunk), ids.chunk(chunk));
        notes.emplace_back(metric.note, metric.outcomes.state());
        metric.chunks_written = ids.full_chunks();
        written.push_back(&metric);
      }
    }
  }
  Status saved;
  for (const auto& [name, text] : notes)
    if (saved) saved = store_.set_note(name, text);
  if (saved) return saved;
  const MutexLock lock(mutex_);
  for (Metric* metric : written) {  // all of it again, next time
    metric->changed = true;
    metric->chunks_written = 0;
  }
  return saved;
}

/// So that a rollout is known from its start, and the outcomes from before a restart count.
void Outcomes::look() {
  const std::vector<OutcomeQuestion> open = questions();
  {
    const MutexLock lock(mutex_);
    follow(open);
    for (auto& [service, metrics] : services_)
      for (Metric& metric : metrics)
        if (metric.predictions) metric.predictions->forget_old(Predictions::Time::clock::now());
  }
  answer(open);
}

void Outcomes::run() {
  std::string trouble;
  while (sleeper_.pause(kBetweenSaves)) {
    look();
    const Status saved = save();
    const std::string said = saved ? "" : saved.error().message;
    if (!said.empty() && said != trouble) log::error("outcomes cannot be written: {}", said);
    trouble = said;
  }
}

void Outcomes::stop() {
  if (!writer_.joinable()) return;
  sleeper_.end();
  writer_.join();
  if (const Status saved = save(); !saved) log::error("outcomes cannot be written: {}", saved.error().message);
}

}  // namespace serin::router
