// prometheus.h: asks the queries of running rollouts, each at its interval, on a thread of its own: a server that hangs must hold no verdict up.
//
//   PrometheusWatch watch([&] { return open_questions(); }, [&](const Question& q, std::optional<double> value) { tell(q, value); });
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "router/rollout/spec.h"
#include "runtime/base/result.h"
#include "runtime/base/sleeper.h"
#include "runtime/net/tls.h"

namespace serin::router {

/// The one number in an answer of /api/v1/query. Errors say what it was instead: no series, several, NaN, a refusal of the server's.
Result<double> read_query_answer(std::string_view body);

class PrometheusWatch {
 public:
  struct Question {
    std::string rollout;  ///< its id
    size_t service = 0;   ///< index in the configuration
    size_t guard = 0;     ///< index in the specification
    rollout::PrometheusGuard asked;
  };
  /// Both are called on the watch's thread. The answer is nothing where there is no fresh number.
  using Questions = std::function<std::vector<Question>()>;
  using Answer = std::function<void(const Question&, std::optional<double>)>;

  /// `tls`: for addresses that are https; null: whom the system believes.
  PrometheusWatch(Questions questions, Answer answer, std::shared_ptr<const net::TlsContext> tls = nullptr);
  ~PrometheusWatch();
  /// There may be new questions. From any thread.
  void look_again();

 private:
  using Time = std::chrono::steady_clock::time_point;
  void run();
  /// Until when nothing else is.
  Time ask_what_is_due();
  void ask(const Question& question);
  Result<double> query(const rollout::PrometheusGuard& asked);

  const Questions questions_;
  const Answer answer_;
  std::shared_ptr<const net::TlsContext> tls_;                        // null: not needed yet
  std::map<std::pair<std::string, size_t>, Time> due_;                // by rollout and guard
  std::map<std::pair<std::string, size_t>, std::string> complaints_;  // said once, until another or none

  Sleeper sleeper_;
  std::thread thread_;
};

}  // namespace serin::router
