// The admin API as its clients see it: over HTTP on loopback where the wire matters, else request in, response out.

#include "router/admin/admin_api.h"

#include <gmock/gmock.h>

#include "router/rollout/replay.h"
#include "runtime/base/config.h"
#include "runtime/net/server.h"
#include "runtime/net/session.h"
#include "tests/router/router_fixture.h"

namespace serin::router {
namespace {

using ::testing::HasSubstr;

class AdminApiTest : public ::testing::Test {
 protected:
  net::Response call(const std::string& method, const std::string& path, const std::string& body = "",
                     std::vector<std::pair<std::string, std::string>> headers = {}) {
    net::Request request{.method = method, .target = path, .path = path.substr(0, path.find('?')), .body = body, .peer = "127.0.0.1:4711"};
    if (path.find('?') != std::string::npos) request.query = path.substr(path.find('?') + 1);
    request.headers.add("Host", "127.0.0.1:8081");
    for (const auto& [name, value] : headers) request.headers.set(name, value);
    return api_.answer(request);
  }
  net::Response start(const std::string& canary = "2") {
    return call("POST", "/v1/rollouts",
                "{\"kind\": \"Rollout\", \"service\": \"digits\", \"canary\": \"" + canary + "\", \"steps\": [5, 50, 100]}");
  }
  static config::Node json(const net::Response& response) { return *config::Node::parse(response.body, "response"); }
  static std::string field(const net::Response& response, std::initializer_list<const char*> path) {
    config::Node node = json(response);
    for (const char* key : path) node = *node.at(key);
    return *node.text();
  }

  TestFolder folder_;
  RouterConfig config_ = digits_config(folder_.file("router.db"));
  metrics::Registry metrics_;
  std::unique_ptr<Controller> controller_ = open_controller(config_, metrics_);
  std::unique_ptr<Access> access_ = *Access::open(config_.admin, metrics_);
  AuditStream audit_{-1};
  AllPredictions predictions_;
  Outcomes outcomes_{config_.services, controller_->store(), metrics_, predictions_};
  AdminApi api_{config_, *controller_, outcomes_, *access_, audit_, metrics_};
};

TEST_F(AdminApiTest, StartAnswersTheStatusWithItsEpochAsETag) {
  const auto started = start();
  ASSERT_EQ(started.status, 201) << started.body;
  EXPECT_EQ(started.headers.get("etag"), "\"1\"");
  EXPECT_EQ(field(started, {"service"}), "digits");
  EXPECT_EQ(field(started, {"stable"}), "1");
  EXPECT_EQ(field(started, {"epoch"}), "1");
  EXPECT_EQ(field(started, {"rollout", "id"}), "digits-1");
  EXPECT_EQ(field(started, {"rollout", "phase"}), "Progressing");
  EXPECT_EQ(field(started, {"rollout", "weight"}), "5");
  EXPECT_EQ(field(started, {"rollout", "weight_ppm"}), "50000");
  EXPECT_EQ(field(started, {"rollout", "steps"}), "3");
  EXPECT_EQ(field(started, {"rollout", "answers", "canary"}), "0");
  const auto evidence = json(started).at("rollout")->at("evidence")->items();
  ASSERT_FALSE(evidence.empty());
  EXPECT_EQ(*evidence[0].at("guard")->text(), "err");
  EXPECT_EQ(*evidence[0].text("bits_to_trip", ""), *evidence[0].at("bits_to_trip")->text());
}

TEST_F(AdminApiTest, AServiceThatNeverHadARolloutSaysNull) {
  const auto status = call("GET", "/v1/rollouts/digits");
  EXPECT_EQ(status.status, 200);
  EXPECT_THAT(status.body, HasSubstr("\"rollout\":null"));
  EXPECT_EQ(call("GET", "/v1/rollouts").body, "{\"rollouts\":[]}\n");
}

TEST_F(AdminApiTest, TheDocumentMayBeYaml) {
  const auto started = call("POST", "/v1/rollouts", "kind: Rollout\nservice: digits\ncanary: {version: 2}\nsteps: [{setWeight: 10}]\n",
                            {{"Content-Type", "application/yaml"}});
  EXPECT_EQ(started.status, 201) << started.body;
  EXPECT_EQ(field(started, {"rollout", "weight_ppm"}), "100000");
}

TEST_F(AdminApiTest, CommandsChangeWhatTheyName) {
  start();
  EXPECT_EQ(field(call("POST", "/v1/rollouts/digits:pause"), {"rollout", "phase"}), "Paused");
  EXPECT_EQ(field(call("POST", "/v1/rollouts/digits:resume"), {"rollout", "phase"}), "Progressing");
  const auto set = call("POST", "/v1/rollouts/digits:set-weight", R"({"weight": 12.5, "reason": "closer"})");
  EXPECT_EQ(field(set, {"rollout", "weight"}), "12.5");
  EXPECT_EQ(controller_->split(0).weight_ppm, 125'000U);
  EXPECT_EQ(field(call("POST", "/v1/rollouts/digits:abort", R"({"reason": "enough"})"), {"rollout", "phase"}), "RolledBack");
  EXPECT_EQ(controller_->split(0).canary, Split::kNoCanary);
}

TEST_F(AdminApiTest, HistorySaysWhoDidWhat) {
  start();
  call("POST", "/v1/rollouts/digits:abort", "", {{"x-serin-actor", "ann"}});
  const auto entries = json(call("GET", "/v1/rollouts/digits/history?limit=10")).at("history")->items();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(*entries[0].at("event")->text(), "started");
  EXPECT_EQ(*entries[0].at("actor")->text(), "127.0.0.1:4711");
  EXPECT_EQ(*entries[1].at("event")->text(), "rolled_back");
  EXPECT_EQ(*entries[1].at("actor")->text(), "ann");
  EXPECT_EQ(json(call("GET", "/v1/rollouts/digits/history?limit=1")).at("history")->items().size(), 1U);
  for (const char* bad : {"limit=0", "limit=-1", "limit=x", "limit=10001", "last=3"})
    EXPECT_EQ(call("GET", std::string("/v1/rollouts/digits/history?") + bad).status, 400) << bad;
}

TEST_F(AdminApiTest, ServicesSayTheirVersionsWeights) {
  controller_->set_endpoint_count(0, 1, {.all = 1, .healthy = 1});
  start();
  const auto versions = json(call("GET", "/v1/services")).at("services")->items().at(0).at("versions")->items();
  ASSERT_EQ(versions.size(), 3U);
  EXPECT_EQ(*versions[0].at("weight_ppm")->text(), "950000");
  EXPECT_EQ(*versions[1].at("weight_ppm")->text(), "50000");
  EXPECT_EQ(*versions[1].at("healthy")->text(), "1");
  EXPECT_EQ(*versions[2].at("weight_ppm")->text(), "0");
}

TEST_F(AdminApiTest, TheGuardOfTheServiceIsTheDefault) {
  config_.services[0].guard.latency_floor = std::chrono::milliseconds(77);
  config_.services[0].guard.latency_skip = 3;
  ASSERT_EQ(call("POST", "/v1/rollouts", "{service: digits, canary: 2, guard: {latency: {skip: 9}}}").status, 201);
  EXPECT_EQ(controller_->spec(0)->guard.latency_floor, std::chrono::milliseconds(77));
  EXPECT_EQ(controller_->spec(0)->guard.latency_skip, 9U);
}

TEST_F(AdminApiTest, R1WeightsThatAreNone) {
  start();
  for (const char* bad : {"-1", "101", "NaN", ".nan", "12.12345", "\"\"", "1e1", "null", "[5]", "{\"1\": 50, \"2\": 40}"}) {
    const auto refused = call("POST", "/v1/rollouts/digits:set-weight", std::string("{\"weight\": ") + bad + "}");
    EXPECT_EQ(refused.status, 400) << bad;
    EXPECT_THAT(refused.body, HasSubstr("weight")) << bad;
  }
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:set-weight", "{\"weights\": {\"1\": 50, \"2\": 40}}").status, 400);
  EXPECT_EQ(controller_->split(0).weight_ppm, 50'000U);
}

TEST_F(AdminApiTest, R2CanaryThatCannotBe) {
  EXPECT_EQ(start("1").status, 400);
  EXPECT_EQ(start("9").status, 400);
  EXPECT_EQ(call("POST", "/v1/rollouts", "{service: digits, stable: 2, canary: 2}").status, 400);
  EXPECT_EQ(call("POST", "/v1/rollouts", "{service: resnet, canary: 2}").status, 404);
  EXPECT_EQ(call("POST", "/v1/rollouts", "{service: digits, stable: 3, canary: 2}").status, 409) << "stable is another one";
  controller_->set_endpoint_count(0, 1, {.all = 1, .healthy = 0});
  const auto dead = start("2");
  EXPECT_EQ(dead.status, 400);
  EXPECT_THAT(dead.body, HasSubstr("healthy"));
}

TEST_F(AdminApiTest, R3WrongStatesAre409AndNameTheState) {
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:promote").status, 409);
  start();
  const auto second = start("3");
  EXPECT_EQ(second.status, 409);
  EXPECT_THAT(second.body, HasSubstr("Progressing"));
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:resume").status, 409);
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:abort").status, 200);
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:abort").status, 200) << "repeated abort";
  const auto promote = call("POST", "/v1/rollouts/digits:promote");
  EXPECT_EQ(promote.status, 409);
  EXPECT_THAT(promote.body, HasSubstr("RolledBack"));
}

TEST_F(AdminApiTest, R4AnEpochThatMovedOnIs412) {
  start();
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:set-weight", "{weight: 7}", {{"If-Match", "\"1\""}}).status, 200);
  const auto late = call("POST", "/v1/rollouts/digits:set-weight", "{weight: 8}", {{"If-Match", "\"1\""}});
  EXPECT_EQ(late.status, 412);
  EXPECT_THAT(late.body, HasSubstr("epoch 2"));
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:pause", "", {{"If-Match", "*"}}).status, 200);
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:abort", "", {{"If-Match", "one"}}).status, 400);
}

TEST_F(AdminApiTest, R5NonsenseInTheDocumentIs400WithItsLine) {
  const auto refused = call("POST", "/v1/rollouts", "service: digits\ncanary: 2\nguard:\n  falseRollback: 0.9\n");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("request body:4:"));
  EXPECT_EQ(call("POST", "/v1/rollouts", "{service: digits, canary: 2, stepz: [5]}").status, 400);
  EXPECT_EQ(call("POST", "/v1/rollouts", "{").status, 400);
  EXPECT_EQ(call("POST", "/v1/rollouts", "").status, 400);
}

TEST_F(AdminApiTest, UndoGivesAllTrafficBackToWhatWasStable) {
  start();
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:undo").status, 409) << "nothing was promoted yet";
  ASSERT_EQ(call("POST", "/v1/rollouts/digits:promote").status, 200);
  ASSERT_TRUE(eventually([&] { return controller_->split(0).stable == 1; }));
  const auto before = controller_->status("digits")->epoch;
  const auto undone = call("POST", "/v1/rollouts/digits:undo", R"({"reason": "customers complain"})", {{"x-serin-actor", "ann"}});
  ASSERT_EQ(undone.status, 200) << undone.body;
  EXPECT_EQ(field(undone, {"stable"}), "1");
  EXPECT_EQ(field(undone, {"rollout", "phase"}), "RolledBack");
  EXPECT_EQ(field(undone, {"rollout", "cause"}), "undo");
  EXPECT_EQ(controller_->split(0), (Split{.stable = 0, .epoch = controller_->split(0).epoch}));
  EXPECT_GT(controller_->status("digits")->epoch, before) << "answers of the undone version are no evidence any more";
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:undo").status, 409) << "once";
  const auto last = json(call("GET", "/v1/rollouts/digits/history")).at("history")->items().back();
  EXPECT_EQ(*last.at("event")->text(), "undone");
  EXPECT_EQ(*last.at("actor")->text(), "ann");
  EXPECT_THAT(*last.at("detail")->text(), HasSubstr("customers complain"));
  EXPECT_EQ(start("2").status, 201) << "and the next rollout may begin";
}

TEST_F(AdminApiTest, UndoneStaysUndoneAfterARestart) {
  start();
  call("POST", "/v1/rollouts/digits:promote");
  ASSERT_TRUE(eventually([&] { return controller_->split(0).stable == 1; }));
  ASSERT_EQ(call("POST", "/v1/rollouts/digits:undo").status, 200);
  controller_.reset();
  const auto again = open_controller(config_, metrics_);
  EXPECT_EQ(again->split(0).stable, 0U);
  EXPECT_EQ(again->status("digits")->rollout->state.cause, "undo");
}

TEST_F(AdminApiTest, RetryStartsTheSameOnceMore) {
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:retry").status, 409);
  ASSERT_EQ(call("POST", "/v1/rollouts", "{service: digits, canary: 2, steps: [7, 70], guard: {errors: {max: 2%}}}").status, 201);
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:retry").status, 409) << "one is under way";
  call("POST", "/v1/rollouts/digits:abort");
  const auto again = call("POST", "/v1/rollouts/digits:retry");
  ASSERT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(field(again, {"rollout", "weight"}), "7");
  EXPECT_EQ(controller_->spec(0)->guard.errors_max, 0.02);
}

TEST_F(AdminApiTest, AVerdictIsExplainedByItsIdAndReplays) {
  start();
  EXPECT_EQ(call("GET", "/v1/verdicts/nope-1").status, 404);
  EXPECT_EQ(call("POST", "/v1/verdicts/digits").headers.get("allow"), "GET, HEAD");
  for (uint64_t i = 0; controller_->split(0).canary != Split::kNoCanary && i < 1000; ++i)
    controller_->observe(0, answer(controller_->split(0), i % 10 == 0 ? rollout::Arm::kCanary : rollout::Arm::kStable,
                                   i % 10 == 0 ? rollout::Outcome::kError : rollout::Outcome::kOk, i));
  const auto explained = call("GET", "/v1/verdicts/digits");
  ASSERT_EQ(explained.status, 200);
  EXPECT_EQ(field(explained, {"id"}), "digits-1");
  EXPECT_EQ(field(explained, {"cause"}), "err");
  const auto record = rollout::parse_record(*json(explained).at("record"));
  ASSERT_TRUE(record) << record.error().message;
  const rollout::Replay again = rollout::replay(*record);
  EXPECT_TRUE(again.rolled_back);
  EXPECT_EQ(again.decided_by, record->events.size() - 1) << "by the last event and no earlier one";

  ASSERT_TRUE(eventually([&] { return controller_->history("digits", 10)->back().event == "rolled_back"; }));
  start("3");
  EXPECT_EQ(field(call("GET", "/v1/verdicts/digits-1"), {"cause"}), "err") << "out of the store, once another rollout is under way";
  EXPECT_EQ(field(call("GET", "/v1/verdicts/digits"), {"phase"}), "Progressing");
}

TEST_F(AdminApiTest, UnknownPathsAndMethods) {
  EXPECT_EQ(call("GET", "/dashboard").status, 404);
  EXPECT_EQ(call("GET", "/v1/rollouts/resnet").status, 404);
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:redo").status, 404);
  EXPECT_EQ(call("POST", "/v1/rollouts/resnet:pause").status, 404);
  EXPECT_EQ(call("GET", "//v1/rollouts").status, 404);
  const auto wrong = call("DELETE", "/v1/rollouts");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.get("allow"), "GET, HEAD, POST");
  EXPECT_EQ(call("GET", "/v1/rollouts/digits:pause").headers.get("allow"), "POST");
  EXPECT_EQ(call("POST", "/metrics").headers.get("allow"), "GET, HEAD");
}

TEST_F(AdminApiTest, R12PagesOfBrowsersAreRefused) {
  EXPECT_EQ(call("GET", "/v1/services", "", {{"Host", "evil.example:8081"}}).status, 403) << "DNS rebinding";
  EXPECT_EQ(call("GET", "/v1/services", "", {{"Host", "127.0.0.1.evil.example"}}).status, 403);
  for (const char* host : {"localhost:8081", "127.0.0.1", "[::1]:8081", "LOCALHOST"})
    EXPECT_EQ(call("GET", "/v1/services", "", {{"Host", host}}).status, 200) << host;
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:abort", "", {{"Origin", "http://evil.example"}}).status, 403);
  for (const char* form : {"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "Text/Plain;charset=utf-8"})
    EXPECT_EQ(call("POST", "/v1/rollouts/digits:abort", "", {{"Content-Type", form}}).status, 415) << form;
}

TEST_F(AdminApiTest, MetricsAndHealth) {
  start();
  const auto page = call("GET", "/metrics");
  EXPECT_THAT(page.body, HasSubstr("serin_route_weight_ppm{service=\"digits\",version=\"2\"} 50000"));
  ASSERT_TRUE(eventually([&] {
    const std::string body = call("GET", "/metrics").body;
    return body.find("serin_rollout_phase{service=\"digits\",phase=\"Progressing\"} 1") != std::string::npos &&
           body.find("serin_route_evidence_bits{service=\"digits\",guard=\"err\"}") != std::string::npos;
  }));
  EXPECT_EQ(call("GET", "/health/live").status, 200);
  EXPECT_EQ(call("GET", "/health/ready").status, 200);
  api_.stop_being_ready();
  EXPECT_EQ(call("GET", "/health/ready").status, 503);
}

TEST_F(AdminApiTest, TheBytesOfShortAnswersStayAsPipelinesKnowThem) {
  EXPECT_EQ(call("GET", "/v1/me").body,
            R"({"name":"127.0.0.1:4711","role":"admin","may":["start","pause","resume","promote","abort","undo","retry","set-weight"]})"
            "\n");
  EXPECT_EQ(call("GET", "/v1/rollouts/digits/verdict").body,
            R"({"verdict":"insufficient_data","service":"digits","rollout":"","reason":"there is no rollout","stable":"1","canary":"",)"
            R"("weight":0,"certified":false})"
            "\n");
  start();
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:abort", R"({"reason":"\"no\""})").status, 200);
  EXPECT_EQ(call("POST", "/v1/rollouts/digits/gates/rollback", "{}").body,
            R"({"verdict":"rolled_back","service":"digits","rollout":"digits-1","reason":"\"no\"","stable":"1","canary":"2",)"
            R"("weight":0,"certified":false})"
            "\n");
  const std::string status = call("GET", "/v1/rollouts/digits").body, services = call("GET", "/v1/services").body;
  EXPECT_EQ(call("GET", "/v1/rollouts").body, R"({"rollouts":[)" + status.substr(0, status.size() - 1) + "]}\n");
  EXPECT_EQ(services, R"({"services":[{"name":"digits","stable":"1","epoch":3,"versions":[)"
                      R"({"name":"1","weight":100,"weight_ppm":1000000,"endpoints":1,"healthy":null},)"
                      R"({"name":"2","weight":0,"weight_ppm":0,"endpoints":1,"healthy":null},)"
                      R"({"name":"3","weight":0,"weight_ppm":0,"endpoints":1,"healthy":null}]}]})"
                      "\n");
}

TEST_F(AdminApiTest, AVerdictIsOfTheVersionThatIsNamed) {
  EXPECT_EQ(field(call("GET", "/v1/rollouts/digits/verdict?canary=1"), {"verdict"}), "promoted");  // it is stable without a rollout
  start();
  EXPECT_EQ(call("POST", "/v1/rollouts/digits:abort", "{}").status, 200);
  EXPECT_EQ(field(call("GET", "/v1/rollouts/digits/verdict?canary=2"), {"verdict"}), "rolled_back");
  const auto next = call("GET", "/v1/rollouts/digits/verdict?canary=3");
  EXPECT_EQ(field(next, {"verdict"}), "insufficient_data");
  EXPECT_EQ(field(next, {"reason"}), "there is no rollout of version '3'");
  EXPECT_EQ(call("POST", "/v1/rollouts/digits/gates/rollback?canary=2", "{}").status, 200);
  EXPECT_EQ(call("POST", "/v1/rollouts/digits/gates/rollback?canary=3", "{}").status, 409);
  EXPECT_EQ(call("POST", "/v1/rollouts/digits/gates/confirm-rollout?canary=2", "{}").status, 409);
  EXPECT_EQ(call("POST", "/v1/rollouts/digits/gates/confirm-rollout?canary=3", "{}").status, 200);
  for (const char* query : {"canary=", "version=3", "canary=3&x=1", "canary"})
    EXPECT_EQ(call("GET", std::string("/v1/rollouts/digits/verdict?") + query).status, 400) << query;
  EXPECT_THAT(call("POST", "/v1/rollouts/digits/gates/load-test", "{}").body, HasSubstr("there are confirm-rollout, pre-rollout"));
  EXPECT_EQ(call("GET", "/v1/rollouts/digits/gates/rollout").status, 405);
}

TEST_F(AdminApiTest, OverHttp) {
  net::Loops loops(1);
  net::Limits limits;
  limits.body_bytes = 4096;
  auto server = net::Server::start(loops, {.limits = limits},
                                   [this](const net::Request& request, net::Responder to) { to.send(api_.answer(request)); });
  ASSERT_TRUE(server) << server.error().message;
  const net::Origin origin{"127.0.0.1", (*server)->port()};
  const auto send = [&](const std::string& method, const std::string& target, const std::string& body) {
    net::Outgoing request{.method = method, .target = target, .body = std::make_shared<const std::string>(body)};
    auto response = net::fetch(origin, request, std::chrono::seconds(10));
    EXPECT_TRUE(response) << response.error().message;
    return response ? *response : net::Response{.status = 0};
  };
  EXPECT_EQ(send("POST", "/v1/rollouts", "{service: digits, canary: 2, steps: [5]}").status, 201);
  EXPECT_EQ(field(send("POST", "/v1/rollouts/digits:pause", "{}"), {"rollout", "phase"}), "Paused");
  EXPECT_EQ(send("POST", "/v1/rollouts", std::string(5000, ' ')).status, 413);
  EXPECT_EQ(send("GET", "/v1/rollouts/digits", "").status, 200);
}

class OutcomesApiTest : public AdminApiTest {
 protected:
  static RouterConfig with_outcomes(RouterConfig config) {
    config.services[0].outcomes = {{.name = "conversion"}, {.name = "accuracy", .labels = LabelConfig{.names = {"cat", "dog"}}}};
    return config;
  }
  net::Response post(const std::string& body) {
    return api_.answer({.method = "POST", .target = kPath, .path = kPath, .body = body, .peer = "127.0.0.1:4711"});
  }
  static std::string report(int id, const std::string& value, const std::string& version = "2") {
    return fmt::format(R"({{"metric": "conversion", "assigned": "{};1=500000,2=500000;{:016x}", "value": {}}})", version, id, value);
  }

  inline static const std::string kPath = "/v1/services/digits/outcomes";
  RouterConfig counting_ = with_outcomes(config_);
  Outcomes outcomes_{counting_.services, controller_->store(), metrics_, predictions_};
  AdminApi api_{counting_, *controller_, outcomes_, *access_, audit_, metrics_};
};

TEST_F(OutcomesApiTest, ReportsAreCountedAndShown) {
  EXPECT_EQ(post(report(1, "1")).body, "{\"accepted\":1,\"duplicates\":0,\"refused\":[]}\n");
  const auto mixed = post("[" + report(1, "1") + "," + report(2, "0", "1") + "," + report(3, "2") + ", {\"metric\": \"conversion\"}]");
  EXPECT_EQ(mixed.status, 200);
  EXPECT_EQ(field(mixed, {"accepted"}) + field(mixed, {"duplicates"}), "11");
  const auto refused = json(mixed).at("refused")->items();
  ASSERT_EQ(refused.size(), 2U);
  EXPECT_EQ(*refused[0].text("index", ""), "2");
  EXPECT_THAT(*refused[0].text("error", ""), HasSubstr("must be from 0 to 1"));
  EXPECT_THAT(*refused[1].text("error", ""), HasSubstr("assigned"));
  const auto shown = api_.answer({.method = "GET", .target = kPath, .path = kPath, .peer = "127.0.0.1:4711"});
  ASSERT_EQ(shown.status, 200);
  const auto metric = json(shown).at("metrics")->items().at(0);
  EXPECT_EQ(*metric.text("reports", "") + *metric.text("verdict", "") + *metric.text("leading", ""), "2undecided2");
}

/// A request that was answered with class 1.
class LabelsApiTest : public OutcomesApiTest {
 protected:
  LabelsApiTest() {
    Predictions& known = *predictions_.get("digits", "accuracy", *counting_.services[0].outcomes[1].labels, metrics_);
    for (int id = 1; id <= 3; ++id)
      known.add(fmt::format("r{}", id),
                {.assigned = fmt::format("2;1=500000,2=500000;{:016x};1764437000123", id),
                 .prediction = {.kind = Prediction::Kind::kNumbers, .rows = {code_of(1.)}}},
                Predictions::Time::clock::now());
  }
  net::Response post_anywhere(const std::string& body) {
    return api_.answer({.method = "POST", .target = "/v1/outcomes", .path = "/v1/outcomes", .body = body, .peer = "127.0.0.1:4711"});
  }
};

TEST_F(LabelsApiTest, ALabelByRequestIsCounted) {
  const std::string counted = "{\"accepted\":1,\"duplicates\":0,\"refused\":[]}\n";
  EXPECT_EQ(post(R"({"request_id": "r1", "label": "dog"})").body, counted);
  EXPECT_EQ(post(R"({"request_id": "r1", "label": 1})").body, "{\"accepted\":0,\"duplicates\":1,\"refused\":[]}\n");
  EXPECT_EQ(post("{request_id: r2, label: [cat], metric: accuracy}").body, counted) << "YAML";
  EXPECT_EQ(post_anywhere(R"({"request_id": "r3", "label": true})").body, counted) << "true is 1";
  const auto shown = api_.answer({.method = "GET", .target = kPath, .path = kPath, .peer = "127.0.0.1:4711"});
  const auto metric = json(shown).at("metrics")->items().at(1);
  EXPECT_EQ(*metric.text("reports", ""), "3");
  EXPECT_THAT(*metric.at("versions")->items().at(1).text("mean", ""), testing::StartsWith("0.66")) << "two of three";
}

TEST_F(LabelsApiTest, WhatIsNotKnownIs404AndTheRestIs400) {
  const auto unknown = post(R"({"request_id": "none", "label": 1})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr("request 'none' is not known to this router"));
  EXPECT_EQ(post(R"([{"request_id": "none", "label": 1}, {"request_id": "nobody", "label": 1}])").status, 404);
  const auto mixed =
      post(R"([{"request_id": "none", "label": 1}, {"request_id": "r1", "label": "bird"}, {"request_id": "r1", "label": 1}])");
  EXPECT_EQ(mixed.status, 200);
  EXPECT_EQ(*json(mixed).at("refused")->items().at(0).text("code", ""), "not_found");
  EXPECT_EQ(*json(mixed).at("refused")->items().at(1).text("code", ""), "invalid_argument");
  for (const auto& [body, complaint] : std::vector<std::pair<std::string, std::string>>{
           {R"({"request_id": "r2"})", "label"},
           {R"({"label": 3})", "request_id"},
           {R"({"request_id": "", "label": 3})", "must not be empty"},
           {R"({"request_id": ["r2"], "label": 3})", "must be a word or a text"},
           {R"({"request_id": "r2", "label": {"a": 1}})", "must be a word or a text"},
           {R"({"request_id": "r2", "label": [[1]]})", "must be a word or a text"},
           {R"({"request_id": "r2", "label": []})", "the class of each row"},
           {R"({"request_id": "r2", "label": [1, 0]})", "one row, so it needs one label, not 2"},
           {R"({"request_id": "r2", "label": "1"})", "'1' is none of the `names`"},
           {R"({"request_id": "r2", "label": ")" + std::string(257, 'x') + R"("})", "1 to 256 bytes"},
           {R"({"request_id": "r2", "label": 1, "value": 1})", "unknown key 'value'"},
           {R"({"request_id": "r2", "label": 1, "metric": "conversion"})", "'conversion' has no `labels`"},
           {R"({"request_id": "r2", "label": 1, "metric": "clicks"})", "no outcome 'clicks'"}}) {
    const auto answer = post(body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_THAT(answer.body, HasSubstr(complaint)) << body;
  }
  EXPECT_THAT(metrics_.render(), HasSubstr(R"(serin_route_labels_total{service="digits",metric="accuracy",result="unknown"} 4)"));
}

TEST_F(LabelsApiTest, ThePathWithoutAServiceNeedsOneThatIsMeant) {
  EXPECT_EQ(post_anywhere(R"({"request_id": "r1", "label": 1})").status, 200);
  EXPECT_EQ(api_.answer({.method = "GET", .target = "/v1/outcomes", .path = "/v1/outcomes", .peer = "127.0.0.1:4711"}).status, 405);
  ServiceConfig other = counting_.services[0];
  other.name = "letters";
  counting_.services.push_back(other);
  const auto unclear = post_anywhere(R"({"request_id": "r2", "label": 1})");
  EXPECT_EQ(unclear.status, 400);
  EXPECT_THAT(unclear.body, HasSubstr("/v1/services/{service}/outcomes: digits, letters"));
  for (ServiceConfig& service : counting_.services) service.outcomes.clear();
  EXPECT_EQ(post_anywhere(R"({"request_id": "r2", "label": 1})").status, 404);
}

TEST_F(OutcomesApiTest, AResetBeginsAnew) {
  post(report(1, "1"));
  const auto reset = api_.answer({.method = "DELETE", .target = kPath, .path = kPath, .peer = "127.0.0.1:4711"});
  EXPECT_EQ(reset.status, 200);
  EXPECT_EQ(*json(reset).at("metrics")->items().at(0).text("verdict", ""), "no_reports");
  EXPECT_EQ(post(report(1, "1")).status, 200);
}

TEST_F(OutcomesApiTest, WhatMakesNoSenseIsRefused) {
  for (const std::string& body : {std::string(), std::string("[]"), std::string("7"), std::string("{"), report(1, "true"), report(1, "1.5"),
                                  report(1, "1", "3"), std::string(R"({"metric": "conversion", "assigned": "x", "value": 1, "at": 2})")}) {
    const auto answer = post(body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_THAT(answer.body, HasSubstr("{\"error\":")) << body;
  }
  std::string many = "[" + report(0, "1");
  for (int i = 1; i <= 1000; ++i) many += "," + report(i, "1");
  EXPECT_EQ(post(many + "]").status, 400);
  EXPECT_THAT(post(many + "]").body, HasSubstr("1 to 1000 reports"));
  EXPECT_EQ(call("GET", "/v1/services/digits/outcomes").status, 404) << "a service without outcomes";
  EXPECT_EQ(call("PUT", "/v1/services/digits/outcomes").status, 405);
  EXPECT_EQ(call("GET", "/v1/services//outcomes").status, 404);
  EXPECT_EQ(call("GET", "/v1/services/outcomes").status, 404);
}

}  // namespace
}  // namespace serin::router
