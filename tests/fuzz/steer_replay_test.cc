// The corpus of the steering fuzzer, and what it once found, replayed by the ordinary build; and every input of them damaged in a few places.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/steer_anything.h"

namespace serin::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> inputs() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(SERIN_STEERING_CORPUS)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Steering : public ::testing::TestWithParam<fs::path> {};

TEST_P(Steering, IsSurvived) {
  const std::string whole = read_file(GetParam());
  steer_anything(whole);
  std::mt19937 random(1);
  for (int i = 0; i < 30; ++i) {
    std::string damaged = whole;
    for (int flips = 0; flips < 3; ++flips) damaged[1 + random() % (damaged.size() - 1)] ^= static_cast<char>(1 << random() % 8);
    steer_anything(damaged);
    steer_anything(whole.substr(0, random() % whole.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Steering, ::testing::ValuesIn(inputs()), [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace serin::fuzz
