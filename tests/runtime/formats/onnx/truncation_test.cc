// M2: every fixture cut off at many places and with bits turned over. Whatever is left of it, an answer comes, and no claim in it is believed:
// the files are copied to memory of exactly their size, and the address space is limited while they are read.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/runtime/formats/onnx/encode.h"

namespace serin::formats {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostCuts = 200;
constexpr int kFlippedFiles = 300;  // of each fixture

std::vector<std::string> fixtures() {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(SERIN_TEST_DATA)) {
    if (entry.path().extension() != ".onnx") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

/// Nothing that these files say is worth a gigabyte.
class LimitedMemory {
 public:
  LimitedMemory() {
    ::getrlimit(RLIMIT_DATA, &before_);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return;  // the sanitizer's own memory counts as data
#endif
    rlimit limited = before_;
    limited.rlim_cur = std::min<rlim_t>(before_.rlim_max, rlim_t{1} << 30);
    ::setrlimit(RLIMIT_DATA, &limited);
  }
  ~LimitedMemory() { ::setrlimit(RLIMIT_DATA, &before_); }

 private:
  rlimit before_{};
};

TEST(M2, TruncatedAnywhere) {
  const LimitedMemory limited;
  size_t refused = 0, tried = 0;
  for (const std::string& file : fixtures()) {
    const size_t step = std::max<size_t>(1, file.size() / kMostCuts);
    for (size_t size = 0; size < file.size(); size += step, ++tried) refused += read(std::string_view(file).substr(0, size)) ? 0 : 1;
  }
  EXPECT_GT(tried, 1000U);
  EXPECT_EQ(refused, tried);  // the opset comes last in these files, so no part of one is a model
}

TEST(M2, BitsTurnedOver) {
  const LimitedMemory limited;
  std::mt19937 random(1);
  size_t answered = 0, tried = 0;
  for (const std::string& original : fixtures()) {
    if (original.empty()) continue;
    for (int i = 0; i < kFlippedFiles; ++i, ++tried) {
      std::string file = original;
      for (int flips = 1 + i % 4; flips > 0; --flips) file[random() % file.size()] ^= static_cast<char>(1U << random() % 8);
      const auto graph = read(file);
      answered += graph || !graph.error().message.empty() ? 1 : 0;
      EXPECT_TRUE(graph || graph.error().code != Code::kInternal) << graph.error().message;
    }
  }
  EXPECT_EQ(answered, tried);
}

}  // namespace
}  // namespace serin::formats
