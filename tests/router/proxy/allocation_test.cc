// No allocation for a request in steady state: whole requests over real sockets, drawn, judged and mirrored, counted in this program's own malloc on
// the io thread of the router alone. The servers and clients have threads of their own, and count for themselves.

#include <execinfo.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "router/proxy/proxy.h"
#include "runtime/net/server.h"
#include "tests/router/router_fixture.h"
#include "tests/runtime/base/counted_malloc.h"
#include "tests/runtime/net/raw_socket.h"

namespace {

thread_local int64_t allocations = 0;
thread_local bool watched = false;  // then the first one is kept
std::array<void*, 16> first_from;
int first_depth = 0;

}  // namespace

void serin::test::count_allocation() {
  ++allocations;
  if (watched && std::exchange(watched, false)) first_depth = ::backtrace(first_from.data(), static_cast<int>(first_from.size()));
}

namespace serin::router {
namespace {

constexpr size_t kClients = 4, kRequests = 1500;  // of each client, in one round

/// Answers with ten scores, the highest of which is where the request's header x-label says.
class Backend {
 public:
  explicit Backend(std::string boot)
      : server_(*net::Server::start(loops_, {}, [this, boot = std::move(boot)](const net::Request& request, net::Responder responder) {
          net::Response response;
          response.headers.add("content-type", "application/json");
          response.headers.add("x-serin-batch", boot + "-" + std::to_string(answers_++) + "/0/1");
          response.body = R"({"model_name":"digits","outputs":[{"name":"scores","datatype":"FP32","shape":[1,10],"data":[)";
          const std::string_view label = request.headers.get("x-label");
          for (int i = 0; i < 10; ++i) response.body.append(i == 0 ? "" : ",").append(std::to_string(i) == label ? "0.91" : "0.01");
          response.body += "]}]}";
          responder.send(std::move(response));
        })) {}
  Endpoint endpoint() const { return {.url = "http://127.0.0.1", .origin = {"127.0.0.1", server_->port()}}; }

 private:
  size_t answers_ = 0;
  net::Loops loops_{1};
  std::unique_ptr<net::Server> server_;
};

/// A router between two such servers, with a rollout under way that nothing ends.
class JudgingRouter {
 public:
  JudgingRouter() : config_(config(folder_.file("router.db"), stable_, canary_)) {
    controller_ = open_controller(config_, registry_);
    proxy_ = std::make_unique<Proxy>(config_, *controller_, loops_, recorders_, predictions_, registry_);
    server_ = *net::Server::start_streaming(loops_, {.metrics = &registry_}, proxy_->handlers());
    EXPECT_TRUE(eventually([&] { return controller_->start(spec(), {}).has_value(); })) << "the canary is not healthy";
    for (size_t i = 0; i < kClients; ++i) clients_.push_back(net::test::RawSocket::connect(server_->port()));
  }

  /// What the io thread has allocated so far; from now on it keeps where the next one comes from.
  int64_t allocations_so_far() {
    int64_t all = 0;
    loops_.post_and_wait(0, [&all] {
      all = allocations;
      watched = true;
    });
    return all;
  }

  /// All clients at once, on the connections that they keep.
  void send_requests() {
    std::vector<std::thread> threads;
    for (net::test::RawSocket& client : clients_) threads.emplace_back([&client] { converse(client); });
    for (std::thread& thread : threads) thread.join();
  }
  rollout::Report report() const { return *controller_->status("digits")->rollout; }

 private:
  static RouterConfig config(const std::string& store, const Backend& stable, const Backend& canary) {
    RouterConfig made = digits_config(store);
    made.services[0].versions.resize(2);
    made.services[0].versions[0].endpoints = {stable.endpoint()};
    made.services[0].versions[1].endpoints = {canary.endpoint()};
    for (VersionConfig& version : made.services[0].versions) version.health.interval = std::chrono::hours(1);
    return made;
  }
  static rollout::Spec spec() {
    rollout::Spec made{.service = "digits", .canary = "2"};
    made.steps = {{.weight_ppm = 300'000, .until = rollout::Step::Until::kDuration, .duration = std::chrono::hours(1)}};
    made.guard.latency_baseline = 1000;
    made.guard.latency_floor = std::chrono::seconds(10);  // a slow machine is no verdict
    made.guard.errors_max = 0.01;
    made.guard.shadow_ppm = 200'000;
    made.shield.hedge.reset();  // nor is a second try every now and then
    return made;
  }
  static void converse(net::test::RawSocket& socket) {
    const std::string body = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]})";
    const std::string rest = "\r\ncontent-type: application/json\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    for (size_t i = 0; i < kRequests; ++i) {
      socket.send("POST /v2/models/digits/infer HTTP/1.1\r\nhost: x\r\nx-label: " + std::to_string(i % 7) + rest);
      const std::string answer = socket.receive_answer();
      ASSERT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
    }
  }

  TestFolder folder_;
  metrics::Registry registry_;
  Backend stable_{"00000000000000aa"}, canary_{"00000000000000bb"};
  RouterConfig config_;
  std::unique_ptr<Controller> controller_;
  net::Loops loops_{1};
  Recorders recorders_;
  AllPredictions predictions_;
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<net::Server> server_;
  std::vector<net::test::RawSocket> clients_;
};

TEST(Allocation, TheCounterCounts) {
  const int64_t before = allocations;
  const auto memory = std::make_unique<std::array<int, 100>>();
  EXPECT_GT(allocations, before);
}

TEST(Allocation, NoneForAJudgedRequest) {
  ::backtrace(first_from.data(), 1);  // the first call loads a library
  JudgingRouter router;
  // The state is steady once everything that is used again is there: as many connections to the servers, above all, as are ever busy at once.
  constexpr int kRounds = 10;
  int64_t made = 0;
  for (int round = 0; round == 0 || (round < kRounds && made > 0); ++round) {
    const int64_t before = router.allocations_so_far();
    router.send_requests();
    made = router.allocations_so_far() - before;
  }

  EXPECT_EQ(made, 0) << "in " << kClients * kRequests << " requests, for the tenth time";
  if (made > 0) ::backtrace_symbols_fd(first_from.data(), first_depth, STDERR_FILENO);
  const rollout::Report report = router.report();
  EXPECT_EQ(report.state.phase, rollout::Phase::kProgressing) << report.state.reason;
  EXPECT_GT(report.canary_answers, kClients * kRequests / 2) << "that was judged";
  EXPECT_GT(report.shadow_answers, kClients * kRequests / 10) << "and mirrored";
}

}  // namespace
}  // namespace serin::router
