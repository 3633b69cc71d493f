// What the fuzzer once found, replayed by the ordinary build: each file of regressions/ is loaded. And damaged models of the test data (M2).

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "tests/fuzz/files.h"
#include "tests/fuzz/load_anything.h"

namespace serin::fuzz {
namespace {

namespace fs = std::filesystem;

void load(const std::string& bytes) { load_anything(std::as_bytes(std::span(bytes))); }

/// And the models that are bad by hand: what they answer, tests/runtime/formats/onnx says.
std::vector<fs::path> regressions() {
  std::vector<fs::path> files;
  for (const char* folder : {SERIN_REGRESSIONS, SERIN_TEST_DATA "/bad"}) {
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".onnx") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

class Regression : public ::testing::TestWithParam<fs::path> {};

TEST_P(Regression, IsSurvived) { load(read_file(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Found, Regression, ::testing::ValuesIn(regressions()),
                         [](const auto& file) { return file.param.stem().string(); });

TEST(Damaged, M2BitsFlippedInModelsThatAreThenRun) {
  std::mt19937 random(1);
  for (const char* name : {"conv_bn", "elementwise_unary", "control_flow", "attention"}) {
    const std::string whole = read_file(fs::path(SERIN_TEST_DATA) / name / "model.onnx");
    ASSERT_FALSE(whole.empty()) << name;
    for (int i = 0; i < 40; ++i) {
      std::string damaged = whole;
      for (int flips = 0; flips < 4; ++flips) damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
      load(damaged);
    }
  }
}

}  // namespace
}  // namespace serin::fuzz
