// tracer.cc: a file is a list in JSON that is whole after every write: what comes goes over its closing bracket.

#include "runtime/serving/host/tracer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "runtime/base/log.h"
#include "runtime/net/http.h"

namespace serin::serving {
namespace {

using protocol::FlatValue;
using protocol::FlatValues;
using std::chrono::milliseconds;

constexpr size_t kMostWaiting = size_t{64} << 20;  // bytes; a disk that takes nothing costs traces, not memory
constexpr milliseconds kPause{200};
constexpr int64_t kMostOfAnything = int64_t{1} << 53;
constexpr std::string_view kEnd = "\n]\n";

int64_t nanoseconds(Clock::time_point time) { return std::chrono::nanoseconds(time.time_since_epoch()).count(); }

/// What `value` says in one word; none: it is a list of several, or no word.
std::optional<std::string> word_of(const FlatValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  const auto* list = std::get_if<std::vector<std::string>>(&value);
  return list && list->size() == 1 ? std::optional(list->front()) : std::nullopt;
}

Status read_number(const std::string& key, const FlatValue& value, int64_t least, int64_t& to) {
  const auto word = word_of(value);
  int64_t number = 0;
  if (word) {
    const char* const end = word->data() + word->size();
    if (const auto read = std::from_chars(word->data(), end, number);
        read.ec == std::errc() && read.ptr == end && !word->empty() && number >= least && number <= kMostOfAnything) {
      to = number;
      return {};
    }
  }
  return invalid(fmt::format("'{}' must be a whole number of at least {}", key, least));
}

Status read_level(const FlatValue& value, bool& on) {
  std::vector<std::string> levels;
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) levels = *list;
  if (const auto word = word_of(value)) levels = {*word};
  if (levels.empty()) return invalid("'trace_level' must be OFF or TIMESTAMPS");
  for (const std::string& level : levels) {
    if (level == "TENSORS") return Error{Code::kUnsupported, "trace_level TENSORS: this server traces TIMESTAMPS only"};
    if (level != "TIMESTAMPS" && level != "OFF")
      return invalid(fmt::format("'trace_level' must be OFF or TIMESTAMPS, not '{}'", level.substr(0, 64)));
  }
  on = std::ranges::find(levels, "OFF") == levels.end();
  return {};
}

Status write_at(const std::string& file, int flags, std::string_view text, uint64_t place) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0640);
  const auto failed = [&] {
    Error error{Code::kIo, fmt::format("{}: {}", file, std::strerror(errno))};
    if (fd >= 0) ::close(fd);
    return error;
  };
  if (fd < 0) return failed();
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::pwrite(fd, text.data() + done, text.size() - done, static_cast<off_t>(place + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return failed();
    done += static_cast<size_t>(wrote);
  }
  ::close(fd);
  return {};
}

}  // namespace

void Trace::end(const Ending& ending) {
  ended = Clock::now();
  timing = ending.timing;
  computed = !ending.failure && !ending.cached;
}

Tracer::~Tracer() {
  if (!writer_.joinable()) return;
  writer_.request_stop();
  writer_.join();
  write_now(true);
}

Status Tracer::start(TraceOptions options) {
  options_ = std::move(options);
  if (options_.file.empty() && std::exchange(options_.on, false))
    log::warning("nothing is traced: no file for traces is named (--trace-file)");
  const MutexLock lock(mutex_);
  all_ = {.on = options_.on, .rate = options_.rate, .count = options_.count};
  log_frequency_ = options_.log_frequency;
  if (options_.file.empty()) return {};
  const std::string first = log_frequency_ > 0 ? options_.file + ".0" : options_.file;
  const bool is_new = !std::filesystem::exists(first);
  if (const Status made = write_at(first, 0, is_new ? "[]\n" : "", 0); !made) return made.error().in("traces");
  look_whether_on();
  writer_ = std::jthread([this](const std::stop_token& stopped) { run(stopped); });
  return {};
}

Tracer::Settings Tracer::of(std::string_view model) const {
  const auto own = models_.find(model);
  if (own == models_.end()) return all_;
  const Own& mine = own->second;
  return {.on = mine.on.value_or(all_.on), .rate = mine.rate.value_or(all_.rate), .count = mine.count.value_or(all_.count)};
}

void Tracer::look_whether_on() {
  const auto wants = [](const auto& named) { return named.second.on.value_or(false); };
  on_ = !options_.file.empty() && (all_.on || std::ranges::any_of(models_, wants));
}

FlatValues Tracer::settings(std::string_view model) const {
  const MutexLock lock(mutex_);
  const Settings now = of(model);
  return {{"trace_file", options_.file},
          {"trace_level", std::vector<std::string>{now.on ? "TIMESTAMPS" : "OFF"}},
          {"trace_rate", std::to_string(now.rate)},
          {"trace_count", std::to_string(now.count)},
          {"log_frequency", std::to_string(log_frequency_)},
          {"trace_mode", "triton"}};
}

Status Tracer::change(std::string_view model, const FlatValues& changes) {
  if (changes.empty()) return {};
  const MutexLock lock(mutex_);
  const bool of_all = model.empty();
  const auto held = models_.find(model);
  Own now = of_all ? Own{all_.on, all_.rate, all_.count} : held == models_.end() ? Own{} : held->second;
  int64_t log_frequency = log_frequency_;
  for (const auto& [key, value] : changes) {
    const bool cleared = std::holds_alternative<std::monostate>(value);
    const auto set = [&, &name = key, &given = value](std::optional<int64_t>& to, int64_t least, int64_t at_start) -> Status {
      to = of_all ? std::optional(at_start) : std::nullopt;
      if (cleared) return {};
      return read_number(name, given, least, to.emplace());
    };
    if (key == "trace_file") {
      return Error{Code::kPermissionDenied,
                   "trace_file: trace file location can not be updated through network protocol: a client that may name a file could write "
                   "to any file"};
    } else if (key == "trace_level") {
      now.on = of_all ? std::optional(options_.on) : std::nullopt;
      if (!cleared) SERIN_CHECK(read_level(value, now.on.emplace()));
    } else if (key == "trace_rate") {
      SERIN_CHECK(set(now.rate, 1, options_.rate));
      now.seen = 0;
    } else if (key == "trace_count") {
      SERIN_CHECK(set(now.count, -1, options_.count));
    } else if (key == "log_frequency") {
      log_frequency = options_.log_frequency;
      if (!cleared) SERIN_CHECK(read_number(key, value, 0, log_frequency));
    } else if (key != "trace_mode") {
      return invalid(fmt::format("unknown trace setting '{}'", key.substr(0, 64)));
    } else if (!cleared && word_of(value) != "triton") {
      return Error{Code::kUnsupported, "trace_mode: this server has the mode triton only"};
    }
  }
  if (now.on.value_or(false) && options_.file.empty())
    return Error{Code::kFailedPrecondition, "this server was started without a file for traces (--trace-file)"};
  if (log_frequency != log_frequency_ && !of_all) return invalid("'log_frequency' is the same for all models: change it for all");
  log_frequency_ = log_frequency;
  if (of_all) {
    all_ = {.on = *now.on, .rate = *now.rate, .count = *now.count};
    seen_ = 0;
  } else if (now.on || now.rate || now.count) {
    models_.insert_or_assign(std::string(model), now);
  } else if (held != models_.end()) {
    models_.erase(held);
  }
  look_whether_on();
  return {};
}

void Tracer::forget(std::string_view model) {
  const MutexLock lock(mutex_);
  if (const auto own = models_.find(model); own != models_.end()) models_.erase(own);
  look_whether_on();
}

uint64_t Tracer::sample(std::string_view model) {
  const MutexLock lock(mutex_);
  const auto found = models_.find(model);
  Own* const own = found == models_.end() ? nullptr : &found->second;
  const Settings now = of(model);
  int64_t& seen = own ? own->seen : seen_;
  int64_t& left = own && own->count ? *own->count : all_.count;
  if (!now.on || left == 0 || ++seen % now.rate != 0) return 0;
  if (left > 0) --left;
  return begin_part();
}

void Tracer::add(const Trace& trace, std::string_view model, std::string_view version, std::string_view request) {
  std::string told = fmt::format(R"({{"id":{},"model_name":{},"model_version":{})", trace.id, net::json_quote(model), version);
  if (!request.empty()) told += fmt::format(R"(,"request_id":{})", net::json_quote(request));
  if (trace.parent != 0) told += fmt::format(R"(,"parent_id":{})", trace.parent);
  told += '}';
  const auto at = [&](std::string_view name, Clock::time_point time) {
    told += fmt::format(",\n{{\"id\":{},\"timestamps\":[{{\"name\":\"{}\",\"ns\":{}}}]}}", trace.id, name, nanoseconds(time));
  };
  const bool http = trace.door == Trace::Door::kHttp;
  if (trace.door != Trace::Door::kNone) {
    at(http ? "HTTP_RECV_START" : "GRPC_WAITREAD_START", trace.received);
    at(http ? "HTTP_RECV_END" : "GRPC_WAITREAD_END", trace.arrived);
  }
  at("REQUEST_START", trace.arrived);
  at("QUEUE_START", trace.queued);
  if (trace.computed) {
    const auto begun =
        std::max(trace.queued, trace.arrived + trace.timing.queue);  // what metrics call the queue begins when the request has arrived
    const auto copied = begun + trace.timing.input;
    at("COMPUTE_START", begun);
    at("COMPUTE_INPUT_END", copied);
    at("COMPUTE_OUTPUT_START", copied + trace.timing.infer);
    at("COMPUTE_END", copied + trace.timing.infer);  // what was computed is not copied
    at("INFER_RESPONSE_COMPLETE", trace.ended);
  }
  at("REQUEST_END", trace.ended);
  if (trace.door != Trace::Door::kNone) {
    at(http ? "HTTP_SEND_START" : "GRPC_SEND_START", trace.ended);
    at(http ? "HTTP_SEND_END" : "GRPC_SEND_END", trace.sent);
  }

  const MutexLock lock(mutex_);
  if (waiting_ + told.size() > kMostWaiting) {
    ++dropped_;
    return;
  }
  if (!text_.empty()) text_ += ",\n";
  text_ += told;
  waiting_ += told.size();
  if (++in_text_ < log_frequency_ || log_frequency_ == 0) return;
  full_.push_back(std::exchange(text_, {}));
  in_text_ = 0;
}

void Tracer::write_now(bool last) {
  std::vector<std::string> files;
  std::string rest;
  uint64_t dropped = 0;
  bool numbered = false;
  {
    const MutexLock lock(mutex_);
    files.swap(full_);
    dropped = std::exchange(dropped_, 0);
    numbered = log_frequency_ > 0;
    if (last || !numbered) {
      rest.swap(text_);
      in_text_ = 0;
    }
    waiting_ = text_.size();
  }
  if (last && numbered && !rest.empty()) files.push_back(std::exchange(rest, {}));
  Status written;
  for (const std::string& text : files)
    if (const Status one = write_at(fmt::format("{}.{}", options_.file, files_++), O_TRUNC, fmt::format("[\n{}{}", text, kEnd), 0); !one)
      written = one;
  if (!rest.empty()) {
    std::error_code gone;
    if (const auto there = std::filesystem::file_size(options_.file, gone); gone || there < written_)
      written_ = 0;  // moved away: another begins
    const std::string text = fmt::format("{}{}{}", written_ == 0 ? "[\n" : ",\n", rest, kEnd);
    if (const Status one = write_at(options_.file, written_ == 0 ? O_TRUNC : 0, text, written_); !one)
      written = one;
    else
      written_ += text.size() - kEnd.size();
  }
  if (!written) log::warning("traces are lost: {}", written.error().message);
  if (dropped > 0) log::warning("{} traces are lost: they came faster than they could be written", dropped);
}

void Tracer::run(const std::stop_token& stopped) {
  const MutexLock lock(mutex_);
  while (!stopped.stop_requested()) {
    more_.wait_for(mutex_, stopped, kPause, [] { return false; });
    const MutexUnlock unlocked(mutex_);
    write_now(false);
  }
}

}  // namespace serin::serving
