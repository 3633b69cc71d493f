// Custom guards: what a rollout makes of the answers of a Prometheus. The server itself is met in tests/e2e/router/test_prometheus.py.

#include "router/notify/prometheus.h"

#include <gmock/gmock.h>

#include "router/app/steering.h"
#include "runtime/net/server.h"
#include "tests/router/router_fixture.h"

namespace serin::router {
namespace {

using ::testing::HasSubstr;

std::string vector_of(const std::string& results) {
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + results + "]}}";
}

/// A server whose answer one can name, and a rollout that asks it every 100 ms.
class PrometheusGuardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = net::Server::start(loops_, {}, [this](const net::Request& request, net::Responder to) {
      const std::lock_guard lock(mutex_);
      asked_ = request.body;
      net::Response response;
      response.status = status_;
      response.body = body_;
      to.send(std::move(response));
    });
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    rollout::Spec spec = spec_of("2", {5, 50});
    spec.guard.prometheus.push_back({.name = "queue",
                                     .address = "http://127.0.0.1:" + std::to_string(server_->port()),
                                     .query = "max(queue{a=\"b\"})",
                                     .max = 100,
                                     .interval = std::chrono::milliseconds(100),
                                     .breaches = 3});
    ASSERT_TRUE(controller_->start(spec, {}));
  }
  void answers(const std::string& value, int status = 200) {
    const std::lock_guard lock(mutex_);
    body_ = value.empty() ? vector_of("") : vector_of(R"({"metric":{},"value":[1,")" + value + "\"]}");
    status_ = status;
  }
  std::string note() { return controller_->status("digits")->rollout->note; }
  rollout::State state() { return controller_->status("digits")->rollout->state; }

  std::mutex mutex_;
  std::string body_ = vector_of(""), asked_;
  int status_ = 200;
  TestFolder folder_;
  RouterConfig config_ = digits_config(folder_.file("router.db"));
  metrics::Registry metrics_;
  net::Loops loops_{1};
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<Steering> steering_ = *Steering::open(config_, metrics_);
  Controller* controller_ = &steering_->controller();
};

TEST_F(PrometheusGuardTest, AboveTheLimitItRollsBackAndSaysSo) {
  answers("12");
  ASSERT_TRUE(eventually([&] { return note().find("prometheus") == std::string::npos; })) << note();
  {
    const std::lock_guard lock(mutex_);
    EXPECT_THAT(asked_, HasSubstr("query=max%28queue%7Ba%3D%22b%22%7D%29&lookback_delta=0.200"));
  }
  answers("101");
  ASSERT_TRUE(eventually([&] { return state().phase == rollout::Phase::kRolledBack; }));
  EXPECT_EQ(state().cause, "prometheus:queue");
  EXPECT_THAT(state().reason, HasSubstr("101 is above 100, 3 times in a row"));
  EXPECT_EQ(controller_->split(0).canary, Split::kNoCanary);
  EXPECT_THAT(controller_->explain("digits").value(), HasSubstr("\"question\":\"samples\""));
}

// Bad input R9 (tests/README.md)
TEST_F(PrometheusGuardTest, R9WithoutAFreshNumberTheStepsHoldAndNothingIsRolledBack) {
  ASSERT_TRUE(eventually([&] { return note() == "held: prometheus:queue has no answer yet"; })) << note();
  answers("5");
  ASSERT_TRUE(eventually([&] { return note().find("prometheus") == std::string::npos; })) << note();
  for (const auto& [value, status] : {std::pair{"NaN", 200}, {"", 200}, {"200", 503}}) {
    answers(value, status);
    ASSERT_TRUE(eventually([&] { return note().find("has had no fresh answer") != std::string::npos; })) << value << note();
    EXPECT_EQ(state().phase, rollout::Phase::kProgressing);
    EXPECT_EQ(state().weight_ppm, 50'000U);
    answers("5");
    ASSERT_TRUE(eventually([&] { return note().find("prometheus") == std::string::npos; })) << note();
  }
  server_.reset();
  ASSERT_TRUE(eventually([&] { return note().find("has had no fresh answer") != std::string::npos; })) << "gone altogether";
  EXPECT_EQ(state().phase, rollout::Phase::kProgressing);
}

}  // namespace
}  // namespace serin::router
