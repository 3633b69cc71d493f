// task_test.cc: each key of a task file is honoured or named, and what contradicts itself is refused by key.

#include "runtime/planner/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/planner/prices.h"

namespace serin::planner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const Catalogue& built_in() {
  static const Catalogue all = *Catalogue::load("");
  return all;
}

Result<Task> read_text(const std::string& text) {
  const auto root = config::Node::parse(text, "task.yaml");
  if (!root) return root.error();
  return read_task(*root, "/somewhere", built_in());
}
std::string error_of(const std::string& text) {
  const auto task = read_text(text);
  return task ? std::string() : task.error().message;
}
std::string note_of(const Task& task, const std::string& key) {
  for (const Note& note : task.notes)
    if (note.key == key) return note.text;
  return {};
}

/// As users of another planner wrote it.
constexpr const char* kAsItLies = R"(
task: {type: "training", framework: "paddlepaddle", model_name: "ernie-gram", sequence_length: 512, batch_size_per_gpu: 16, num_gpus_estimate: "auto"}
resource_policy: {memory_threshold: 0.85, allow_mixed_precision: true, distributed_strategy: "ddp", preferred_devices: ["A100-SXM4-40GB", "V100-32GB", "RTX_3090"]}
scheduler: {algorithm: "rl_based", timeout: 300}
)";

TEST(Task, AFileOfAnotherPlannerIsTakenAsItLies) {
  const auto task = read_text(kAsItLies);
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ(task->model_name, "ernie-gram");
  EXPECT_EQ(task->length, 512);
  EXPECT_EQ(task->batch, 16);
  EXPECT_FALSE(task->policy.most_replicas);
  EXPECT_DOUBLE_EQ(task->policy.memory_threshold, 0.85);
  EXPECT_EQ(task->policy.mixed_precision, true);
  EXPECT_DOUBLE_EQ(task->timeout, 300);
  ASSERT_THAT(task->policy.preferred, SizeIs(3));
  EXPECT_EQ(task->policy.preferred[0][0]->name, "NVIDIA A100-SXM4-40GB");
  EXPECT_THAT(task->policy.preferred[1], SizeIs(2));  // SXM2 and PCIe
  EXPECT_EQ(task->policy.preferred[2][0]->name, "NVIDIA GeForce RTX 3090");
  EXPECT_THAT(note_of(*task, "task.type"), HasSubstr("Serin does not train: this is what serving the trained model needs"));
  EXPECT_THAT(note_of(*task, "task.framework"), HasSubstr("ignored"));
  EXPECT_THAT(note_of(*task, "resource_policy.distributed_strategy"), HasSubstr("ddp is ignored"));
  EXPECT_THAT(note_of(*task, "scheduler.algorithm"), HasSubstr("rl_based is replaced by an exact solver"));
  EXPECT_THAT(task->notes, SizeIs(4));  // all other keys mean what they say
}

TEST(Task, TheRestOfAPolicyIsRead) {
  const auto task = read_text(R"(
model: [models/a, /b/model.onnx]
task: {type: inference, num_gpus_estimate: 3}
resource_policy: {prefer: [domestic, L4], max_latency: 80ms, min_accuracy: 95%, tenant: vision, precision: fp16}
demand: {rps: 300, slo: ["p99<=50ms", "p50<=10ms"]}
prices: prices.yaml
tenants: {vision: {devices: 4, cores: 64, memory: 256Gi, hourly_cost: 12}, other: {}}
)");
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_THAT(task->models, testing::ElementsAre("/somewhere/models/a", "/b/model.onnx"));
  EXPECT_EQ(task->prices, "/somewhere/prices.yaml");
  EXPECT_EQ(task->policy.most_replicas, 3);
  EXPECT_DOUBLE_EQ(task->demand.rps, 300);
  ASSERT_THAT(task->demand.slos, SizeIs(3));  // the longest latency is one
  EXPECT_DOUBLE_EQ(task->demand.slos[0].seconds, 0.08);
  EXPECT_THAT(note_of(*task, "resource_policy.min_accuracy"), AllOf(HasSubstr("95 % is not judged here"), HasSubstr("serin eval")));
  EXPECT_EQ(task->policy.quota->devices, 4);
  EXPECT_EQ(task->policy.quota->memory, 256.0 * (1 << 30));
  Device card{.name = "Some Card"};
  EXPECT_FALSE(task->policy.prefers(&card));
  card.labels = {"domestic"};
  EXPECT_TRUE(task->policy.prefers(&card));
  EXPECT_TRUE(task->policy.prefers(*built_in().find("L4")));
  EXPECT_FALSE(task->policy.prefers(nullptr));
}

TEST(Task, UnknownKeysAndValuesAreNamedWithTheirPlace) {
  const std::pair<const char*, const char*> rows[] = {
      {"tsk: {}", "task.yaml:1:1: unknown key 'tsk'"},
      {"task:\n  batch_size_per_gpus: 3", "task.yaml:2:3: unknown key 'batch_size_per_gpus' under task"},
      {"task: {batch_size_per_gpus: 3}", "did you mean 'batch_size_per_gpu'?"},
      {"resource_policy: {prefered_devices: [L4]}", "did you mean 'preferred_devices'?"},
      {"scheduler: {time_out: 3}", "did you mean 'timeout'?"},
      {"task: {type: tuning}", "task.type: must be one of"},
      {"task: {sequence_length: 0}", "task.sequence_length"},
      {"task: {batch_size_per_gpu: -1}", "task.batch_size_per_gpu"},
      {"task: {num_gpus_estimate: many}", "task.num_gpus_estimate: must be auto, or a number"},
      {"resource_policy: {memory_threshold: 1.5}", "resource_policy.memory_threshold: must be a fraction"},
      {"resource_policy: {memory_threshold: 0}", "resource_policy.memory_threshold: must be from 5% to 100%"},
      {"resource_policy: {allow_mixed_precision: perhaps}", "resource_policy.allow_mixed_precision"},
      {"resource_policy: {preferred_devices: [L4, TPU-v9]}",
       "resource_policy.preferred_devices[1]: the catalogue has no device 'TPU-v9'; it has: NVIDIA H200"},
      {"resource_policy: {max_latency: 50}", "resource_policy.max_latency: must be a duration"},
      {"resource_policy: {precision: fp7}", "resource_policy.precision: must be one of fp32"},
      {"demand: {rps: -1}", "demand.rps"},
      {"demand: {slo: fast}", "demand.slo: 'fast' must be a percentile"},
      {"scheduler: {timeout: 0}", "scheduler.timeout"},
      {"tenants: {a: {gpus: 3}}\nresource_policy: {tenant: a}", "unknown key 'gpus' under tenants.a"},
      {"tenants: {a: {memory: much}}\nresource_policy: {tenant: a}", "tenants.a.memory: must be bytes"},
  };
  for (const auto& [text, said] : rows) EXPECT_THAT(error_of(text), HasSubstr(said)) << text;
}

TEST(Task, ContradictionsAreRefusedByKey) {
  const std::pair<const char*, const char*> rows[] = {
      {"resource_policy: {allow_mixed_precision: false, precision: fp16}",
       "resource_policy.precision: fp16 contradicts resource_policy.allow_mixed_precision, which is false"},
      {"task: {batch_size: 2, batch_size_per_gpu: 4}", "task: batch_size and batch_size_per_gpu are the same"},
      {"task: {num_gpus_estimate: 4}\nresource_policy: {tenant: a}\ntenants: {a: {devices: 2}}",
       "tenants.a: devices: 2 contradicts task.num_gpus_estimate, which is 4"},
      {"resource_policy: {tenant: b}\ntenants: {a: {devices: 2}}", "tenants: has no tenant 'b'"},
      {"resource_policy: {tenant: b}", "resource_policy.tenant: 'b' has no quota, because the file has no tenants"},
  };
  for (const auto& [text, said] : rows) EXPECT_THAT(error_of(text), HasSubstr(said)) << text;
}

TEST(Prices, AreThoseOfDevicesOfTheCatalogue) {
  const auto with = [](const std::string& text) {
    const auto path = std::filesystem::path(testing::TempDir()) / "serin_prices_test.yaml";
    std::ofstream(path) << text;
    return read_prices(path, built_in());
  };
  const auto prices = with("currency: EUR\nhour: {L4: 0.7, core: 0.03, gigabyte: 0.004}\n");
  ASSERT_TRUE(prices) << prices.error().message;
  const Device* const card = *built_in().find("L4");
  EXPECT_TRUE(prices->knows(card));
  EXPECT_FALSE(prices->knows(*built_in().find("H200")));
  EXPECT_DOUBLE_EQ(prices->hour(card, 0.5, 2, 10e9), 0.35 + 0.06 + 0.04);
  EXPECT_DOUBLE_EQ(prices->hour(nullptr, 1, 2, 10e9), 0.06 + 0.04);
  EXPECT_THAT(with("hour: {L5: 1}").error().message, HasSubstr("hour.L5: the catalogue has no device 'L5'"));
  EXPECT_THAT(with("hour: {L4: -1}").error().message, HasSubstr("hour.L4"));
  EXPECT_THAT(with("hours: {L4: 1}").error().message, HasSubstr("did you mean 'hour'?"));
  EXPECT_THAT(with("hour: {}").error().message, HasSubstr("has no price"));
}

TEST(Catalogue, NamesOfTaskFilesMayMeanSeveralCards) {
  const auto names = [](const char* text) {
    std::vector<std::string> all;
    const auto found = built_in().find_all(text);
    if (found)
      for (const Device* device : *found) all.push_back(device->name);
    return all;
  };
  EXPECT_THAT(names("V100-32GB"), testing::ElementsAre("Tesla V100-SXM2-32GB", "Tesla V100-PCIE-32GB"));
  EXPECT_THAT(names("A100 40G"), testing::ElementsAre("NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"));
  EXPECT_THAT(names("RTX_3090"), testing::ElementsAre("NVIDIA GeForce RTX 3090"));
  EXPECT_THAT(names("rtx3090"), testing::ElementsAre("NVIDIA GeForce RTX 3090"));
  EXPECT_THAT(names("L4"), testing::ElementsAre("NVIDIA L4"));
  EXPECT_THAT(names("T4"), testing::ElementsAre("Tesla T4"));
  EXPECT_THAT(names("Ascend 910"), testing::ElementsAre("Ascend 910"));
  EXPECT_THAT(names("A100"), SizeIs(4));
  EXPECT_THAT(names("B300"), SizeIs(0));
  EXPECT_THAT(names("-"), SizeIs(0));
}

}  // namespace
}  // namespace serin::planner
