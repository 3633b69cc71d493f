// Goals as users write them, and keys of a serin.yaml that has comments and blocks.

#include <gtest/gtest.h>

#include "runtime/cli/tune/goal.h"
#include "runtime/cli/tune/settings_text.h"
#include "runtime/cli/tune/tune_report.h"

namespace serin::cli {
namespace {

TEST(Goal, HasMetricsAndLatencies) {
  const auto goal = parse_goal("accuracy >= 95 %, p99 <= 50 ms,  f1>0.8 ,p50<2s, p999 <= 900us");
  ASSERT_TRUE(goal) << goal.error().message;
  ASSERT_EQ(goal->quality.size(), 2u);
  EXPECT_EQ(goal->quality[0].metric, "top1");
  EXPECT_DOUBLE_EQ(goal->quality[0].bound, 0.95);
  EXPECT_EQ(goal->quality[0].text, "accuracy >= 95 %");
  EXPECT_TRUE(goal->quality[1].holds(0.81) && !goal->quality[1].holds(0.8));
  ASSERT_EQ(goal->latency.size(), 3u);
  EXPECT_DOUBLE_EQ(goal->latency[0].bound, 50);
  EXPECT_DOUBLE_EQ(goal->latency[1].bound, 2000);
  EXPECT_DOUBLE_EQ(goal->latency[2].bound, 0.9);
}

TEST(Goal, NamesTheConditionThatIsWrong) {
  for (const char* text : {"", " ", "top1 >= 0.9,", ",", "fast", "top1 = 1", "p99 >= 5 ms", "p99 <= -1 ms", "p99 <= 0", "p99 <= 5 %",
                           "p99 <= 2 h", "p99 <= 1e9 s", "p99 <= nan", "top1 >= nan"}) {
    const auto goal = parse_goal(text);
    ASSERT_FALSE(goal) << text;
    EXPECT_EQ(goal.error().code, Code::kInvalidArgument) << text;
    EXPECT_TRUE(goal.error().message.starts_with("--goal")) << goal.error().message;
  }
}

TEST(SettingsText, ReplacesKeysAndLeavesTheRest) {
  const std::string text =
      "# why it is so\n"
      "max_batch: 4  # measured\n"
      "\n"
      "pre:\n"
      "  - decode: {}\n"
      "instances: 2\n"
      "warmup:\n"
      "- name: max_batch: no\n"
      "# the end\n"
      "\"precision\": bf16";
  const auto changed = with_keys(text, {{"max_batch", "8"}, {"precision", "int8"}, {"instances", ""}, {"samples", ""}});
  ASSERT_TRUE(changed);
  EXPECT_EQ(*changed,
            "# why it is so\n"
            "pre:\n"
            "  - decode: {}\n"
            "warmup:\n"
            "- name: max_batch: no\n"
            "# the end\n"
            "max_batch: 8\n"
            "precision: int8\n");
  EXPECT_EQ(*with_keys("", {{"max_batch", "8"}}), "max_batch: 8\n");
  EXPECT_EQ(with_keys("{max_batch: 4}\n", {{"max_batch", "8"}}).error().code, Code::kUnsupported);
}

Trial trial_of(const std::string& precision, double per_second, double cpu_ms, uint64_t memory, const std::string& why = "") {
  return {.choice = {.precision = precision},
          .measured = Measurement{.per_second = per_second, .cpu_ms = cpu_ms, .memory_bytes = memory},
          .why = why};
}

TEST(TuneReport, ChoosesTheCheapestThatHolds) {
  TuneReport report;
  report.trials = {trial_of("a", 100, 1.0, 1000), trial_of("b", 500, 2.0, 1000), trial_of("c", 900, 0.5, 1000, "too late"),
                   trial_of("d", 520, 2.0, 1050), trial_of("e", 490, 1.5, 500)};
  report.choose();
  EXPECT_EQ(report.trials[*report.chosen].choice.precision, "e") << "within 10 % of the most answers, and half of the memory";
  report.rate = 50;
  report.choose();
  EXPECT_EQ(report.trials[*report.chosen].choice.precision, "a") << "the least processor time of those that hold";
  report.trials = {trial_of("c", 900, 0.5, 1000, "too late"), {.choice = {}, .measured = {}, .why = "does not load"}};
  report.choose();
  EXPECT_FALSE(report.chosen);
}

TEST(TuneReport, TakesTheFirstOfEqualOnes) {
  TuneReport report;
  report.trials = {trial_of("fp32", 500, 1, 1000), trial_of("int8", 530, 1, 960)};
  report.choose();
  EXPECT_EQ(report.trials[*report.chosen].choice.precision, "fp32");
}

}  // namespace
}  // namespace serin::cli
