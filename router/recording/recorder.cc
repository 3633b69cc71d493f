#include "router/recording/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "router/recording/recording_file.h"
#include "runtime/base/log.h"

namespace serin::router {
namespace {

constexpr std::chrono::seconds kBetweenSaves{60};

/// Whether they keep the same parts of a request.
bool keep_the_same(const std::vector<std::string>& headers, const std::vector<std::string>& redact, const RecordingConfig& config) {
  return headers == config.headers && redact == config.redact;
}

}  // namespace

Recorder::Recorder(std::string service, const RecordingConfig& config, bool successor) : service_(std::move(service)), config_(config) {
  if (!config_.file.empty() && !successor) {
    const MutexLock lock(mutex_);
    load();
  }
  writer_ = std::thread([this] { run(); });
}

Recorder::~Recorder() {
  sleeper_.end();
  writer_.join();
  if (const Status saved = save(); !saved) log::error("service '{}': recording: {}", service_, saved.error().message);
}

void Recorder::show(metrics::Registry& registry) {
  const MutexLock lock(mutex_);
  count_ = registry.gauge("serin_route_recorded_requests", "Requests that are kept to be sent to a canary.", {{"service", service_}});
  size_ =
      registry.gauge("serin_route_recorded_bytes", "Memory of the requests that are kept to be sent to a canary.", {{"service", service_}});
  trim(Clock::now());
}

void Recorder::load() {
  const auto file = read_recording_file(config_.file, config_.key, service_);
  if (!file && file.error().code == Code::kNotFound) return;
  if (!file) {
    may_write_ = false;
    log::error("service '{}': recording: {}; it is left as it is, and requests are kept in memory only", service_, file.error().message);
    return;
  }
  if (!keep_the_same(file->headers, file->redact, config_)) {
    log::info("service '{}': recording: headers or redact have changed: what was recorded is deleted", service_);
    changed_ = true;
    return;
  }
  requests_.assign(file->requests.begin(), file->requests.end());
  for (const auto& request : requests_) bytes_ += request->bytes();
  trim(Clock::now());
}

void Recorder::trim(Clock::time_point now) {
  while (!requests_.empty() &&
         (requests_.size() > config_.requests || bytes_ > config_.bytes || requests_.front()->at + config_.keep < now)) {
    bytes_ -= requests_.front()->bytes();
    requests_.pop_front();
    changed_ = true;  // what is deleted here is deleted in the file as well
  }
  if (!count_) return;
  count_->set(static_cast<double>(requests_.size()));
  size_->set(static_cast<double>(bytes_));
}

void Recorder::add(RecordedRequest request) {
  const Clock::time_point now = request.at;
  auto kept = std::make_shared<const RecordedRequest>(std::move(request));
  if (kept->bytes() > config_.bytes) return;
  const MutexLock lock(mutex_);
  if (!wants(now)) return;  // another thread was first
  bytes_ += kept->bytes();
  requests_.push_back(std::move(kept));
  const bool full = requests_.size() >= config_.requests || bytes_ > config_.bytes;
  trim(now);
  changed_ = true;
  const auto every =
      std::chrono::duration_cast<Clock::duration>(config_.keep) / static_cast<int64_t>(std::max<size_t>(requests_.size(), 1));
  next_ = full ? (now + every).time_since_epoch().count() : 0;
}

Recording Recorder::latest(size_t most, Clock::time_point now) const {
  const MutexLock lock(mutex_);
  Recording newest;
  for (auto each = requests_.rbegin(); each != requests_.rend() && newest.size() < most; ++each)
    if ((*each)->at + config_.keep >= now) newest.push_back(*each);
  return newest;
}

Status Recorder::save() {
  RecordingFile file{.headers = config_.headers, .redact = config_.redact, .requests = {}};
  {
    const MutexLock lock(mutex_);
    trim(Clock::now());
    if (config_.file.empty() || !may_write_ || !std::exchange(changed_, false)) return {};
    file.requests.assign(requests_.begin(), requests_.end());
  }
  Status written = write_recording_file(config_.file, config_.key, service_, file);
  const MutexLock lock(mutex_);
  changed_ = changed_ || !written;
  return written;
}

void Recorder::retire(Recorder& successor) {
  const bool same_file = config_.file == successor.config_.file;
  if (!same_file)
    if (const Status saved = save(); !saved) log::error("service '{}': recording: {}", service_, saved.error().message);
  const MutexLock lock(mutex_);
  const MutexLock its_lock(successor.mutex_);
  if (same_file) successor.may_write_ = may_write_;
  may_write_ = false;
  next_ = std::numeric_limits<Clock::rep>::max();
  successor.replayed_ = replayed_;
  successor.changed_ = true;
  if (keep_the_same(successor.config_.headers, successor.config_.redact, config_)) {
    successor.requests_.insert(successor.requests_.end(), requests_.begin(), requests_.end());
    successor.bytes_ += bytes_;
  }
  requests_.clear();
  bytes_ = 0;
  successor.trim(Clock::now());
}

bool Recorder::begin_replay(const std::string& track, uint32_t epoch) {
  const MutexLock lock(mutex_);
  const auto [known, first] = replayed_.try_emplace(track, epoch);
  return first || std::exchange(known->second, epoch) != epoch;
}

std::shared_ptr<Recorder> Recorders::get(const std::string& service, const RecordingConfig& config, metrics::Registry& registry) {
  std::shared_ptr<Recorder>& recorder = recorders_[service];
  if (!recorder || !(recorder->config() == config)) {
    const bool same_file = recorder && recorder->config().file == config.file;
    auto next = std::make_shared<Recorder>(service, config, same_file);
    if (recorder) recorder->retire(*next);
    recorder = std::move(next);
  }
  recorder->show(registry);
  return recorder;
}

void Recorders::keep_only(const std::vector<std::string>& services) {
  std::erase_if(recorders_, [&](const auto& entry) { return std::ranges::find(services, entry.first) == services.end(); });
}

void Recorder::run() {
  std::string trouble;
  while (sleeper_.pause(kBetweenSaves)) {
    const Status saved = save();
    const std::string said = saved ? "" : saved.error().message;
    if (!said.empty() && said != trouble) log::error("service '{}': recording: {}", service_, said);
    trouble = said;
  }
}

}  // namespace serin::router
