// catalogue_test.cc: the built-in devices make sense, and those of users are refused by key where they do not.

#include "runtime/planner/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "runtime/planner/fit.h"
#include "runtime/planner/latency.h"

namespace serin::planner {
namespace {

using ::testing::HasSubstr;

Catalogue catalogue() {
  auto loaded = Catalogue::load("");
  EXPECT_TRUE(loaded) << loaded.error().message;
  return *loaded;
}

/// Loads a file with one device: this text with some of it replaced.
Result<Catalogue> with(const std::string& what, const std::string& by) {
  std::string text = R"(devices:
  - name: Test Card
    kind: gpu
    memory: {gb: 24, source: "a datasheet"}
    bandwidth: {gbps: 600, source: "a datasheet"}
    peak: {fp32: 31.2, fp16: 125, int8: 250, source: "a datasheet"}
    runs: true
)";
  if (const size_t at = text.find(what); at != std::string::npos && !what.empty()) text.replace(at, what.size(), by);
  const auto path = std::filesystem::path(testing::TempDir()) / "serin_catalogue_test.yaml";
  std::ofstream(path) << text;
  return Catalogue::load(path);
}

std::string error_of(const std::string& what, const std::string& by) {
  const auto loaded = with(what, by);
  return loaded ? std::string() : loaded.error().message;
}

TEST(Catalogue, EveryAcceleratorIsWithinTheRangeOfRealOnes) {
  std::set<std::string> names;
  const Catalogue all = catalogue();
  for (const Device& device : all.devices()) {
    EXPECT_TRUE(names.insert(device.name).second) << device.name;
    if (device.kind == Device::Kind::kCpu) continue;
    const double intensity = device.peak.at("fp16") / device.bandwidth;
    EXPECT_GE(intensity, 50) << device.name;
    EXPECT_LE(intensity, 450) << device.name;
    EXPECT_EQ(device.runs, device.why_not.empty()) << device.name;
  }
  EXPECT_GE(names.size(), 14u);
}

TEST(Catalogue, FindsByPartsOfNames) {
  const Catalogue all = catalogue();
  EXPECT_EQ((*all.find("L4"))->name, "NVIDIA L4");
  EXPECT_EQ((*all.find("A100-SXM4-40GB"))->name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ((*all.find("RTX_3090"))->name, "NVIDIA GeForce RTX 3090");
  EXPECT_EQ((*all.find("ascend"))->name, "Ascend 910");
  EXPECT_THAT(all.find("V100").error().message,
              HasSubstr("may be one of: Tesla V100-SXM2-32GB, Tesla V100-SXM2-16GB, Tesla V100-PCIE-32GB"));
  EXPECT_THAT(all.find("TPU").error().message, HasSubstr("no device 'TPU'; it has: NVIDIA H200"));
}

TEST(Catalogue, CloudsHaveNamesOfTheirOwn) {
  const Catalogue all = catalogue();
  const std::pair<const char*, const char*> names[] = {{"nvidia-tesla-a100", "NVIDIA A100-SXM4-40GB"},
                                                       {"nvidia-a100-80gb", "NVIDIA A100-SXM4-80GB"},
                                                       {"nvidia-h100-80gb", "NVIDIA H100 80GB HBM3"},
                                                       {"nvidia-h200-141gb", "NVIDIA H200"},
                                                       {"nvidia-l4", "NVIDIA L4"},
                                                       {"nvidia-tesla-t4", "Tesla T4"},
                                                       {"nvidia-tesla-v100", "Tesla V100-SXM2-16GB"}};
  for (const auto& [alias, name] : names) {
    EXPECT_EQ((*all.find(alias))->name, name);
    const auto every = all.find_all(alias);
    ASSERT_EQ(every->size(), 1u) << alias;
    EXPECT_EQ(every->front()->name, name);
  }
}

TEST(Catalogue, AMisspelledCardNamesTheNearestOne) {
  const Catalogue all = catalogue();
  EXPECT_THAT(all.find("A100-SMX4-40GB").error().message,
              HasSubstr("no device 'A100-SMX4-40GB'; did you mean 'A100-SXM4-40GB'?; it has: "));
  EXPECT_THAT(all.find("L44").error().message, HasSubstr("did you mean 'L4'?"));
  EXPECT_THAT(all.find("nvidia-telsa-t4").error().message, HasSubstr("did you mean 'nvidia-tesla-t4'?"));
}

TEST(Catalogue, RefusesNonsenseByKey) {
  EXPECT_TRUE(with("", ""));
  EXPECT_THAT(error_of("fp16: 125", "fp16: 1979"), HasSubstr("devices[0].peak: fp16 1979.0 TFLOP/s over 600 GB/s is 3298 FLOP/B"));
  EXPECT_THAT(error_of("fp32: 31.2, fp16: 125", "fp32: 10, fp16: 250"), HasSubstr("fp16 is 25.0 times fp32"));
  EXPECT_THAT(error_of("int8: 250", "int8: 500"), HasSubstr("int8 is 4.0 times fp16"));
  EXPECT_THAT(error_of("gbps: 600", "gbps: 6000"), HasSubstr("is 21 FLOP/B, which no accelerator has"));
  EXPECT_THAT(error_of(", source: \"a datasheet\"", ""), HasSubstr("devices[0].memory: has no source"));
  EXPECT_THAT(error_of("gb: 24", "gb: -1"), HasSubstr("gb"));
  EXPECT_THAT(error_of("gb: 24", "gb: many"), HasSubstr("gb"));
  EXPECT_THAT(error_of("kind: gpu", "kind: toaster"), HasSubstr("kind"));
  EXPECT_THAT(error_of("runs: true", "runs: true\n    price: 3"), HasSubstr("unknown key 'price'"));
  EXPECT_THAT(error_of("fp16: 125, ", ""), HasSubstr("has no fp16 figure"));
}

TEST(Catalogue, OneOfTheUserReplacesOrAdds) {
  const auto own = with("name: Test Card", "name: NVIDIA L4");
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ((*own->find("L4"))->bandwidth, 600e9);
  EXPECT_EQ(own->devices().size(), catalogue().devices().size());
}

TEST(Catalogue, ACoreHasItsShareOfACpu) {
  const Catalogue all = catalogue();
  const Device& cpu = **all.find("EPYC 7763");
  EXPECT_DOUBLE_EQ(roof_of(cpu, "fp32", 1).flops * 64, roof_of(cpu, "fp32", 64).flops);
  EXPECT_EQ(roof_of(cpu, "fp32", 1000).flops, cpu.peak.at("fp32"));
  EXPECT_EQ(roof_of(cpu, "fp8", 1).flops, 0);
}

TEST(Fit, BytesAreReadAsKubernetesWritesThem) {
  EXPECT_EQ(parse_bytes("512Mi"), size_t{512} << 20);
  EXPECT_EQ(parse_bytes("16G"), 16'000'000'000u);
  EXPECT_EQ(parse_bytes("1.5Gi"), size_t{3} << 29);
  EXPECT_EQ(parse_bytes("123"), 123u);
  for (const char* wrong : {"", "Gi", "-1G", "1Q", "0", "1e30", "nan"}) EXPECT_FALSE(parse_bytes(wrong)) << wrong;
}

}  // namespace
}  // namespace serin::planner
