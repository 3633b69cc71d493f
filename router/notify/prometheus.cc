// prometheus.cc: one instant query after the other. `lookback_delta` asks for samples that are no older than two intervals, so that a target that is
// gone is absent at once and not after Prometheus' five minutes; a server that does not know the parameter ignores it.

#include "router/notify/prometheus.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/config.h"
#include "runtime/base/log.h"
#include "runtime/base/number.h"
#include "runtime/net/session.h"
#include "runtime/net/target.h"

namespace serin::router {
namespace {

constexpr std::chrono::seconds kLongestWait{2};

/// [<time>, "<value>"]
Result<double> read_sample(const config::Node& sample) {
  const auto parts = sample.items();
  if (parts.size() != 2) return Error{Code::kCorrupt, "the answer has no value"};
  SERIN_TRY(const std::string text, parts[1].text());
  if (const auto value = parse_number<double>(text)) return *value;
  return Error{Code::kOutOfRange, fmt::format("the answer is {}", text.substr(0, 40))};
}

}  // namespace

Result<double> read_query_answer(std::string_view body) {
  SERIN_TRY(const config::Node root, config::Node::parse(body, "answer"));
  SERIN_TRY(const std::string status, root.text("status", ""));
  if (status != "success") {
    SERIN_TRY(const std::string why, root.text("error", "no answer of Prometheus"));
    return Error{Code::kUnavailable, why.substr(0, 200)};
  }
  SERIN_TRY(const config::Node data, root.at("data"));
  SERIN_TRY(const std::string type, data.text("resultType", ""));
  SERIN_TRY(const config::Node result, data.at("result"));
  if (type == "scalar") return read_sample(result);
  const auto series = result.items();
  if (type != "vector" || series.size() != 1)
    return Error{Code::kNotFound, fmt::format("the answer is a {} of {} series, but one number is needed", type, series.size())};
  SERIN_TRY(const config::Node value, series[0].at("value"));
  return read_sample(value);
}

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
  const double seconds = std::chrono::duration<double>(asked.interval).count();
  net::Outgoing request{.method = "POST", .target = (url->path == "/" ? "" : url->path) + "/api/v1/query"};
  request.headers.set("Content-Type", "application/x-www-form-urlencoded");
  request.body = std::make_shared<const std::string>(fmt::format("query={}&lookback_delta={:.3f}", net::escaped(asked.query), 2 * seconds));
  const auto wait = std::min<std::chrono::nanoseconds>(kLongestWait, asked.interval);
  SERIN_TRY(const net::Response response, net::fetch(url->origin, request, wait, tls_));
  if (response.status / 100 == 2 || response.status / 100 == 4) return read_query_answer(response.body);
  return Error{Code::kUnavailable, fmt::format("the server answers {}", response.status)};
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
