// prometheus.cc: one instant query after the other. `lookback_delta` asks for samples that are no older than two intervals, so that a target that is
// gone is absent at once and not after Prometheus' five minutes; a server that does not know the parameter ignores it.

#include "router/notify/prometheus.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/net/prometheus.h"

namespace serin::router {
namespace {

constexpr std::chrono::seconds kLongestWait{2};

}  // namespace

PrometheusWatch::PrometheusWatch(Questions questions, Answer answer, std::shared_ptr<const net::TlsContext> tls)
    : questions_(std::move(questions)), answer_(std::move(answer)), tls_(std::move(tls)), thread_([this] { run(); }) {}

PrometheusWatch::~PrometheusWatch() {
  sleeper_.end();
  thread_.join();
}

void PrometheusWatch::look_again() { sleeper_.wake(); }

void PrometheusWatch::run() {
  while (sleeper_.wait(ask_what_is_due() - Time::clock::now())) {
  }
}

PrometheusWatch::Time PrometheusWatch::ask_what_is_due() {
  const auto questions = questions_();
  const auto is_over = [&](const auto& entry) {
    return std::ranges::none_of(questions,
                                [&](const Question& question) { return entry.first == std::pair(question.rollout, question.guard); });
  };
  std::erase_if(due_, is_over);
  std::erase_if(complaints_, is_over);
  for (const Question& question : questions) {
    const Time now = Time::clock::now();
    Time& due = due_[{question.rollout, question.guard}];
    if (now < due) continue;
    due = now + std::chrono::duration_cast<Time::duration>(question.asked.interval);
    ask(question);
  }
  Time next = Time::clock::now() + std::chrono::hours(1);
  for (const auto& [question, due] : due_) next = std::min(next, due);
  return next;
}

Result<double> PrometheusWatch::query(const rollout::PrometheusGuard& asked) {
  const auto url = net::parse_url(asked.address);
  if (!url) return Error{Code::kInvalidArgument, fmt::format("address {} is not http://HOST:PORT", asked.address)};
  if (url->origin.secure && !tls_) {
    SERIN_TRY(tls_, net::TlsContext::for_client({}));
  }
  const net::PrometheusServer server{
      .server = *url, .tls = tls_, .patience = std::min<std::chrono::nanoseconds>(kLongestWait, asked.interval)};
  SERIN_TRY(const net::PrometheusAnswer answer, net::ask_prometheus(server, {.query = asked.query, .lookback = 2 * asked.interval}));
  return answer.one_number();
}

void PrometheusWatch::ask(const Question& question) {
  const Result<double> value = query(question.asked);
  std::string& complaint = complaints_[{question.rollout, question.guard}];
  const std::string now = value ? "" : value.error().message;
  if (!now.empty() && now != complaint)
    log::warning("rollout '{}': query '{}' of {}: {}; its steps hold", question.rollout, question.asked.name, question.asked.address, now);
  complaint = now;
  answer_(question, value ? std::optional(*value) : std::nullopt);
}

}  // namespace serin::router
