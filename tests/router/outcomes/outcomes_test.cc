// Reports of several services, on a store: what is counted is there after a restart, and bad reports do no harm.

#include "router/outcomes/outcomes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "router/store/sqlite_store.h"
#include "tests/router/store/test_folder.h"
#include "tests/runtime/base/eventually.h"

namespace serin::router {
namespace {

using testing::HasSubstr;

Result<OutcomeReport> report(std::string metric, std::string version, uint64_t id, double value) {
  return OutcomeReport{.metric = std::move(metric), .assigned = fmt::format("{};1=500000,2=500000;{:016x}", version, id), .value = value};
}

class OutcomesTest : public ::testing::Test {
 protected:
  OutcomesTest() {
    ServiceConfig digits{.name = "digits", .outcomes = {{.name = "conversion"}, {.name = "basket", .most = 100}}};
    for (const char* name : {"1", "2"}) digits.versions.push_back({.name = name});
    services_ = {digits, {.name = "plain"}};
    open();
  }
  void open() {
    outcomes_.reset();
    store_.reset();
    store_ = std::move(store::open_sqlite_store(folder_.file("router.db"))->store);
    outcomes_ = std::make_unique<Outcomes>(services_, *store_, registry_, predictions_);
  }
  OutcomeReceipt add(std::vector<Result<OutcomeReport>> reports) { return outcomes_->add("digits", reports).value(); }
  uint64_t reports(size_t metric = 0) const { return outcomes_->summary("digits")->metrics[metric].reports; }

  TestFolder folder_;
  metrics::Registry registry_;
  AllPredictions predictions_;
  std::vector<ServiceConfig> services_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Outcomes> outcomes_;
};

TEST_F(OutcomesTest, EachReportIsCountedByItself) {
  const OutcomeReceipt receipt = add({report("conversion", "1", 1, 1), report("conversion", "2", 2, 0), report("conversion", "2", 2, 0),
                                      report("basket", "2", 2, 99), report("basket", "2", 3, 101), report("clicks", "1", 4, 1),
                                      invalid("no map"), OutcomeReport{.metric = "basket", .assigned = "2", .value = 1}});
  EXPECT_EQ(receipt.accepted, 3U);
  EXPECT_EQ(receipt.duplicates, 1U);
  ASSERT_EQ(receipt.refused.size(), 4U);
  EXPECT_EQ(receipt.refused[0].index, 4U);
  EXPECT_THAT(receipt.refused[0].error, HasSubstr("from 0 to 100"));
  EXPECT_THAT(receipt.refused[1].error, HasSubstr("no outcome 'clicks'"));
  EXPECT_EQ(receipt.refused[2].error, "no map");
  EXPECT_THAT(receipt.refused[3].error, HasSubstr("x-serin-assigned"));
  EXPECT_EQ(reports(0), 2U);
  EXPECT_EQ(reports(1), 1U);
  EXPECT_THAT(registry_.render(), HasSubstr(R"(serin_route_outcomes_total{service="digits",metric="conversion",version="2"} 1)"));
}

TEST_F(OutcomesTest, LabelsAreOutcomesOfTheRequestsThatTheyName) {
  services_[0].outcomes.push_back({.name = "accuracy", .labels = LabelConfig{}});
  open();
  const auto predictions = predictions_.get("digits", "accuracy", {}, registry_);
  for (uint64_t id = 0; id < 4; ++id)
    predictions->add(fmt::format("r{}", id),
                     {.assigned = report("", id % 2 == 0 ? "1" : "2", id, 0)->assigned,
                      .prediction = {.kind = Prediction::Kind::kNumbers, .rows = {code_of(3.)}}},
                     Predictions::Time::clock::now());
  const auto label = [](std::string request, double number) -> Result<OutcomeReport> {
    return OutcomeReport{.request_id = std::move(request), .label = {number}};
  };
  const OutcomeReceipt receipt =
      add({label("r0", 3), label("r1", 4), label("r2", 3), label("r2", 3), label("r9", 3), report("accuracy", "2", 3, 1), label("r3", 3),
           OutcomeReport{.metric = "basket", .request_id = "r3", .label = {3.}}});
  EXPECT_EQ(receipt.accepted, 4U) << "one of them by its header";
  EXPECT_EQ(receipt.duplicates, 2U) << "a label twice, and one of a draw that was reported by its header";
  ASSERT_EQ(receipt.refused.size(), 2U);
  EXPECT_EQ(receipt.refused[0].code, "not_found");
  EXPECT_THAT(receipt.refused[1].error, HasSubstr("'basket' has no `labels`"));
  const MetricSummary accuracy = outcomes_->summary("digits")->metrics[2];
  EXPECT_EQ(accuracy.versions[0].mean, 1);
  EXPECT_EQ(accuracy.versions[1].mean, 0.5);
  for (const auto& [result, count] : {std::pair("counted", 3), {"duplicate", 2}, {"unknown", 1}, {"refused", 0}})
    EXPECT_THAT(registry_.render(),
                HasSubstr(fmt::format(R"(serin_route_labels_total{{service="digits",metric="accuracy",result="{}"}} {})", result, count)));
  services_[0].outcomes.push_back({.name = "second", .labels = LabelConfig{}});
  open();
  EXPECT_THAT(add({label("r0", 3)}).refused[0].error, HasSubstr("metric: must be named"));
  services_[0].outcomes.resize(2);
  open();
  EXPECT_THAT(add({label("r0", 3)}).refused[0].error, HasSubstr("no outcome of service 'digits' has `labels`"));
}

TEST_F(OutcomesTest, LabelsOfRequestsFromBeforeARestartCount) {
  services_[0].outcomes.push_back({.name = "accuracy", .labels = LabelConfig{}});
  open();
  predictions_.get("digits", "accuracy", {}, registry_)
      ->add("r1", {.assigned = report("", "2", 1, 0)->assigned, .prediction = {.kind = Prediction::Kind::kNumbers, .rows = {code_of(3.)}}},
            Predictions::Time::clock::now());
  outcomes_->stop();
  predictions_ = {};
  open();
  const OutcomeReceipt receipt = add({OutcomeReport{.request_id = "r1", .label = {3.}}});
  EXPECT_EQ(receipt.accepted, 1U);
  EXPECT_EQ(outcomes_->summary("digits")->metrics[2].versions[1].mean, 1);
}

TEST_F(OutcomesTest, AServiceWithoutOutcomesSaysSo) {
  for (const char* service : {"plain", "none"}) {
    EXPECT_EQ(outcomes_->summary(service).error().code, Code::kNotFound);
    EXPECT_EQ(outcomes_->add(service, {}).error().code, Code::kNotFound);
    EXPECT_EQ(outcomes_->reset(service).error().code, Code::kNotFound);
  }
}

TEST_F(OutcomesTest, ARestartLosesNothing) {
  std::vector<Result<OutcomeReport>> many;
  for (uint64_t id = 0; id < 2500; ++id) many.push_back(report("conversion", id % 2 == 0 ? "1" : "2", id, id % 3 == 0 ? 1 : 0));
  EXPECT_EQ(add(many).accepted, 2500U);
  const std::string before = outcomes_->summary("digits")->metrics[0].text;
  open();
  EXPECT_EQ(reports(), 2500U);
  EXPECT_EQ(outcomes_->summary("digits")->metrics[0].text, before);
  EXPECT_EQ(add(many).duplicates, 2500U) << "also those that were reported before";
  EXPECT_EQ(add({report("conversion", "1", 9999, 1)}).accepted, 1U);
  open();
  EXPECT_EQ(reports(), 2501U);
}

TEST_F(OutcomesTest, ReportsAreWrittenWithoutBeingAsked) {
  add({report("conversion", "1", 1, 1)});
  EXPECT_TRUE(test::eventually([&] { return store_->note("outcomes/digits/conversion").value().has_value(); }));
}

TEST_F(OutcomesTest, AResetIsForGood) {
  std::vector<Result<OutcomeReport>> many;
  for (uint64_t id = 0; id < 1500; ++id) many.push_back(report("conversion", "1", id, 1));
  add(many);
  open();
  ASSERT_TRUE(outcomes_->reset("digits").has_value());
  EXPECT_EQ(reports(), 0U);
  open();
  EXPECT_EQ(reports(), 0U);
  EXPECT_EQ(add(many).accepted, 1500U);
  open();
  EXPECT_EQ(add(many).duplicates, 1500U);
}

TEST_F(OutcomesTest, AnotherRangeBeginsAnewAndADamagedNoteDoes) {
  add({report("conversion", "1", 1, 1), report("basket", "1", 1, 50)});
  services_[0].outcomes[1].most = 200;
  open();
  EXPECT_EQ(reports(0), 1U);
  EXPECT_EQ(reports(1), 0U);
  outcomes_.reset();
  ASSERT_TRUE(store_->set_note("outcomes/digits/conversion", "{]").has_value());
  open();
  EXPECT_EQ(reports(0), 0U);
  EXPECT_EQ(add({report("conversion", "1", 1, 1)}).accepted, 1U);
}

}  // namespace
}  // namespace serin::router
