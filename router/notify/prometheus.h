// prometheus.h: Sends the Prometheus queries of running rollouts, each at its own interval.
//
// It has its own thread: a server that does not answer must not delay a verdict.
//
//   PrometheusWatch watch([&] { return open_questions(); }, [&](const Question& q, std::optional<double> value) { report(q, value); });
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "router/rollout/spec.h"
#include "runtime/base/result.h"
#include "runtime/base/sleeper.h"
#include "runtime/net/tls.h"

namespace serin::router {

class PrometheusWatch {
 public:
  struct Question {
    std::string rollout;  ///< its id
    size_t service = 0;   ///< index in the configuration
    size_t guard = 0;     ///< index in the specification
    rollout::PrometheusGuard asked;
  };
  /// Both are called on the watch's thread. The answer is nothing if there is no fresh number.
  using Questions = std::function<std::vector<Question>()>;
  using Answer = std::function<void(const Question&, std::optional<double>)>;

  /// `tls`: for https addresses; null: the system's trusted authorities.
  PrometheusWatch(Questions questions, Answer answer, std::shared_ptr<const net::TlsContext> tls = nullptr);
  ~PrometheusWatch();
  /// There may be new questions. Any thread may call this.
  void look_again();

 private:
  using Time = std::chrono::steady_clock::time_point;
  void run();
  /// Returns the time at which the next question is due.
  Time ask_what_is_due();
  void ask(const Question& question);
  Result<double> query(const rollout::PrometheusGuard& asked);

  const Questions questions_;
  const Answer answer_;
  std::shared_ptr<const net::TlsContext> tls_;                        // null: not needed yet
  std::map<std::pair<std::string, size_t>, Time> due_;                // by rollout and guard
  std::map<std::pair<std::string, size_t>, std::string> complaints_;  // logged once, until it changes or ends

  Sleeper sleeper_;
  std::thread thread_;
};

}  // namespace serin::router
