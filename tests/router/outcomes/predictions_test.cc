// What is kept of answers until their labels come: how a label is compared, what is forgotten first, and which IDs are no names.

#include "router/outcomes/predictions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "router/store/sqlite_store.h"
#include "tests/router/store/test_folder.h"

namespace serin::router {
namespace {

using testing::HasSubstr;
using Kind = Prediction::Kind;

class PredictionsTest : public ::testing::Test {
 protected:
  Predictions& open(const LabelConfig& config = {}) { return predictions_.emplace("digits", "accuracy", config); }
  static Prediction numbers(std::vector<double> classes) {
    Prediction prediction{.kind = Kind::kNumbers};
    for (const double each : classes) prediction.rows.push_back(code_of(each));
    return prediction;
  }
  void add(const std::string& id, Prediction prediction, uint64_t asked = 0) {
    predictions_->add(id, {.assigned = "of " + id, .asked = asked, .prediction = std::move(prediction)}, now_);
  }
  double value(const std::string& id, const Label& label) { return predictions_->judge(id, label, now_)->value; }
  Error refusal(const std::string& id, const Label& label) { return predictions_->judge(id, label, now_).error(); }

  std::optional<Predictions> predictions_;
  Predictions::Time now_{std::chrono::hours(1)};
};

TEST_F(PredictionsTest, TheValueIsTheShareOfRowsThatAreRight) {
  open();
  add("one", numbers({3}));
  EXPECT_EQ(predictions_->judge("one", {3.}, now_)->assigned, "of one");
  EXPECT_EQ(value("one", {3.}), 1);
  EXPECT_EQ(value("one", {4.}), 0);
  add("four", numbers({0, 1, 2, -0.}));
  EXPECT_EQ(value("four", {0., 1., 7., 0.}), 0.75) << "-0 is 0";
  EXPECT_THAT(refusal("four", {0.}).message, HasSubstr("the answer has 4 rows, so it needs a list of as many labels, not 1"));
  EXPECT_THAT(refusal("one", {3., 3.}).message, HasSubstr("one row, so it needs one label, not 2"));
}

TEST_F(PredictionsTest, ALabelHasTheTypeOfTheClasses) {
  open();
  add("number", numbers({3}));
  add("text", {.kind = Kind::kTexts, .rows = {code_of("cat")}});
  EXPECT_EQ(value("text", {"cat"}), 1);
  EXPECT_EQ(value("text", {"dog"}), 0);
  EXPECT_EQ(refusal("text", {3.}).code, Code::kInvalidArgument);
  EXPECT_THAT(refusal("text", {3.}).message, HasSubstr("must be a text"));
  EXPECT_THAT(refusal("number", {"3"}).message, HasSubstr("must be a number, as the classes of the answer are"));
}

TEST_F(PredictionsTest, NamesStandForTheirPlaces) {
  open({.names = {"cat", "dog"}});
  add("dog", numbers({1}));
  EXPECT_EQ(value("dog", {"dog"}) + value("dog", {1.}), 2);
  EXPECT_EQ(value("dog", {"cat"}), 0);
  EXPECT_THAT(refusal("dog", {"bird"}).message, HasSubstr("'bird' is none of the `names`"));
}

TEST_F(PredictionsTest, AnErrorIsWrongAndWhatCannotBeReadIsNoEvidence) {
  open();
  add("error", {.kind = Kind::kFailed});
  EXPECT_EQ(value("error", {3.}) + value("error", {"cat"}) + value("error", {1., 2.}), 0);
  add("odd", {.kind = Kind::kUnread, .why = "it was a poem"});
  EXPECT_EQ(refusal("odd", {3.}).code, Code::kFailedPrecondition);
  EXPECT_THAT(refusal("odd", {3.}).message, HasSubstr("nothing can be said of request 'odd': it was a poem"));
  EXPECT_EQ(refusal("none", {3.}).code, Code::kNotFound);
}

TEST_F(PredictionsTest, OfARetryTheFirstAnswerCountsAndAnIdOfTwoRequestsIsNone) {
  open();
  add("retried", numbers({3}), 1);
  add("retried", numbers({4}), 1);
  EXPECT_EQ(value("retried", {3.}), 1);
  add("counter", numbers({3}), 1);
  add("counter", numbers({3}), 2);
  EXPECT_THAT(refusal("counter", {3.}).message, HasSubstr("another request has had the same ID"));
  now_ += std::chrono::hours(25);
  add("counter", numbers({5}), 3);
  EXPECT_EQ(value("counter", {5.}), 1) << "an ID of long ago is free again";
}

TEST_F(PredictionsTest, TheOldestGoFirst) {
  metrics::Registry registry;
  open({.requests = 3}).show(registry);
  for (int i = 0; i < 5; ++i) add(fmt::format("r{}", i), numbers({1}));
  EXPECT_EQ(refusal("r1", {1.}).code, Code::kNotFound);
  EXPECT_EQ(value("r2", {1.}) + value("r3", {1.}) + value("r4", {1.}), 3);
  EXPECT_THAT(registry.render(), HasSubstr(R"(serin_route_predictions{service="digits",metric="accuracy"} 3)"));
  EXPECT_THAT(registry.render(), HasSubstr(R"(serin_route_predictions_dropped_total{service="digits",metric="accuracy"} 2)"));
  EXPECT_EQ(predictions_->size().first, 3U);
}

TEST_F(PredictionsTest, TheirMemoryHasALimit) {
  constexpr size_t kMost = size_t{1} << 20;
  open({.requests = 1'000'000, .bytes = kMost});
  for (int i = 0; i < 3000; ++i) add(fmt::format("{}-{}", i, std::string(40, 'x')), numbers(std::vector<double>(100, 1)));
  EXPECT_LE(predictions_->size().second, kMost);
  EXPECT_GT(predictions_->size().second, kMost / 2);
  EXPECT_EQ(refusal("0-" + std::string(40, 'x'), {1.}).code, Code::kNotFound);
  open({.bytes = 100});
  add("large", numbers({1}));
  EXPECT_EQ(predictions_->size(), std::pair(size_t{0}, size_t{0}));
}

TEST_F(PredictionsTest, AgeEndsThem) {
  open({.keep = std::chrono::minutes(10)});
  add("old", numbers({1}));
  now_ += std::chrono::minutes(10);
  add("new", numbers({1}));
  EXPECT_EQ(value("old", {1.}), 1);
  now_ += std::chrono::seconds(1);
  EXPECT_EQ(refusal("old", {1.}).code, Code::kNotFound);
  EXPECT_EQ(predictions_->size().first, 2U);
  predictions_->forget_old(now_);
  EXPECT_EQ(predictions_->size().first, 1U);
  now_ += std::chrono::hours(1);
  predictions_->forget_old(now_);
  EXPECT_EQ(predictions_->size(), std::pair(size_t{0}, size_t{0})) << "all of their memory is counted back";
}

/// With a store, as after a restart of the program.
class StoredPredictionsTest : public PredictionsTest {
 protected:
  Predictions& restart(const LabelConfig& config = {}) {
    open(config);
    predictions_->restore(*store_, "kept", now_);
    return *predictions_;
  }
  void keep(const std::string& id, Prediction prediction, uint64_t asked = 0) {
    predictions_->add(id, {.assigned = "2;1=5,2=5;" + id, .asked = asked, .prediction = std::move(prediction)}, now_);
  }
  void save() { ASSERT_TRUE(predictions_->save(*store_, "kept").has_value()); }

  TestFolder folder_;
  std::unique_ptr<store::Store> store_ = std::move(store::open_sqlite_store(folder_.file("router.db"))->store);
};

TEST_F(StoredPredictionsTest, ARestartKeepsThem) {
  restart();
  keep("number", numbers({3, 4}));
  keep("text", {.kind = Kind::kTexts, .rows = {code_of("cat")}});
  keep("error", {.kind = Kind::kFailed});
  save();
  keep("odd", {.kind = Kind::kUnread, .why = "it was a poem"});
  keep("counter", numbers({3}), 1);
  keep("counter", numbers({3}), 2);
  keep("retried", numbers({3}), 1);
  save();
  restart();
  EXPECT_EQ(predictions_->size().first, 6U);
  EXPECT_EQ(predictions_->judge("number", {3., 5.}, now_)->assigned, "2;1=5,2=5;number");
  EXPECT_EQ(value("number", {3., 5.}), 0.5);
  EXPECT_EQ(value("text", {"cat"}) - value("text", {"dog"}), 1);
  EXPECT_EQ(value("error", {3.}), 0);
  EXPECT_THAT(refusal("odd", {3.}).message, HasSubstr("'odd': it was a poem"));
  EXPECT_THAT(refusal("counter", {3.}).message, HasSubstr("another request has had the same ID"));
  keep("retried", numbers({4}), 1);
  EXPECT_EQ(value("retried", {3.}), 1) << "of a retry the first answer counts";
  keep("number", numbers({3, 4}), 7);
  EXPECT_THAT(refusal("number", {3., 4.}).message, HasSubstr("another request has had the same ID")) << "also after the restart";
  save();
  restart();
  EXPECT_THAT(refusal("number", {3., 4.}).message, HasSubstr("another request has had the same ID"));
}

TEST_F(StoredPredictionsTest, AgeAndNumberEndThemThereToo) {
  const LabelConfig ten_minutes{.requests = 3, .keep = std::chrono::minutes(10)};
  restart(ten_minutes);
  for (int i = 0; i < 5; ++i) keep(fmt::format("r{}", i), numbers({1}));
  now_ += std::chrono::minutes(6);
  keep("r5", numbers({1}));
  save();
  restart(ten_minutes);
  EXPECT_EQ(predictions_->size().first, 3U);
  EXPECT_EQ(refusal("r2", {1.}).code, Code::kNotFound);
  EXPECT_EQ(value("r3", {1.}) + value("r5", {1.}), 2);
  now_ += std::chrono::minutes(5);
  restart(ten_minutes);
  EXPECT_EQ(refusal("r3", {1.}).code, Code::kNotFound) << "the time of the answer counts, and not that of the start";
  EXPECT_EQ(value("r5", {1.}), 1);
  restart({.requests = 10, .keep = std::chrono::hours(1)});
  EXPECT_EQ(predictions_->size().first, 6U) << "with wider limits, as many as are there";
}

TEST_F(StoredPredictionsTest, TheStoreDoesNotGrow) {
  restart({.requests = 1000});
  const auto places = [&] { return store_->note("kept")->value_or(""); };
  std::string after_some;
  for (int i = 0; i < 20'000; ++i) {
    keep(fmt::format("r{}-{}", i, std::string(100, 'x')), numbers({1}));
    if (i % 500 == 0) save();
    if (i == 5000) after_some = places();
  }
  EXPECT_EQ(places(), after_some);
  now_ += std::chrono::hours(25);
  predictions_->forget_old(now_);
  save();
  EXPECT_EQ(store_->note("kept/0")->value_or("?"), "") << "what nobody may ask for any more is not on disk";
}

TEST_F(StoredPredictionsTest, ClassesOfAnotherOutputBeginAnew) {
  restart();
  keep("old", numbers({3}));
  save();
  restart({.output = "scores"});
  EXPECT_EQ(refusal("old", {3.}).code, Code::kNotFound);
  keep("new", numbers({3}));
  save();
  restart({.output = "scores"});
  EXPECT_EQ(value("new", {3.}), 1);
  restart();
  EXPECT_EQ(predictions_->size(), std::pair(size_t{0}, size_t{0}));
}

TEST_F(StoredPredictionsTest, DamagedNotesLoseWhatTheyHad) {
  restart();
  keep("kept", numbers({3}));
  save();
  const std::string note = store_->note("kept/0")->value_or("");
  ASSERT_TRUE(store_->set_note("kept/0", note + "no line\n").has_value());
  restart();
  EXPECT_EQ(value("kept", {3.}), 1);
  for (const char* index : {"", " ", "x", "0000 1", "0000 4000000000", "18446744073709551616"}) {
    ASSERT_TRUE(store_->set_note("kept", index).has_value());
    restart();
    EXPECT_EQ(predictions_->size().first, 0U) << index;
    keep("next", numbers({3}));
    EXPECT_EQ(value("next", {3.}), 1);
  }
}

TEST(AllPredictionsTest, AReloadKeepsThemUnlessTheirSettingsChange) {
  metrics::Registry first, second;
  AllPredictions all;
  const auto before = all.get("digits", "accuracy", {}, first);
  EXPECT_EQ(all.get("digits", "accuracy", {}, second), before);
  EXPECT_NE(all.get("digits", "parity", {}, second), before);
  EXPECT_NE(all.get("digits", "accuracy", {.output = "scores"}, second), before);
  const auto kept = all.get("digits", "accuracy", {}, second);
  all.keep_only(std::vector{kept});
  EXPECT_EQ(all.get("digits", "accuracy", {}, second), kept);
  all.keep_only({});
  EXPECT_NE(all.get("digits", "accuracy", {}, second), kept);
}

}  // namespace
}  // namespace serin::router
