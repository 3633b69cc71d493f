// The corpora of all fuzzers except that of the loader, with what they once found, replayed by the ordinary build; and every input of them
// damaged in a few places.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <vector>

#include "tests/fuzz/config_anything.h"
#include "tests/fuzz/doors_anything.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/formats_anything.h"
#include "tests/fuzz/http_anything.h"
#include "tests/fuzz/infer_anything.h"
#include "tests/fuzz/pictures_anything.h"
#include "tests/fuzz/serve_anything.h"
#include "tests/fuzz/steer_anything.h"
#include "tests/fuzz/text_anything.h"

namespace serin::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> inputs(const char* target) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(SERIN_CORPUS) / target)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

/// Also damaged, and cut off.
void replay(const fs::path& path, void (*target)(std::string_view)) {
  const std::string whole = read_file(path);
  target(whole);
  std::mt19937 random(1);
  for (int i = 0; i < 30; ++i) {
    std::string damaged = whole;
    for (int flips = 0; flips < 3; ++flips) damaged[1 + random() % (damaged.size() - 1)] ^= static_cast<char>(1 << random() % 8);
    target(damaged);
    target(whole.substr(0, random() % whole.size()));
  }
}

class Steering : public ::testing::TestWithParam<fs::path> {};
class Http : public ::testing::TestWithParam<fs::path> {};
class Infer : public ::testing::TestWithParam<fs::path> {};
class Doors : public ::testing::TestWithParam<fs::path> {};
class Config : public ::testing::TestWithParam<fs::path> {};
class Serve : public ::testing::TestWithParam<fs::path> {};
class Text : public ::testing::TestWithParam<fs::path> {};
class Formats : public ::testing::TestWithParam<fs::path> {};
class Pictures : public ::testing::TestWithParam<fs::path> {};

TEST_P(Steering, IsSurvived) { replay(GetParam(), steer_anything); }
TEST_P(Http, IsSurvived) { replay(GetParam(), http_anything); }
TEST_P(Infer, IsSurvived) { replay(GetParam(), infer_anything); }
TEST_P(Doors, IsSurvived) { replay(GetParam(), doors_anything); }
TEST_P(Config, IsSurvived) { replay(GetParam(), config_anything); }
TEST_P(Serve, IsSurvived) { replay(GetParam(), serve_anything); }
TEST_P(Text, IsSurvived) { replay(GetParam(), text_anything); }
TEST_P(Formats, AreSurvived) { replay(GetParam(), formats_anything); }
TEST_P(Pictures, AreSurvived) { replay(GetParam(), pictures_anything); }

const auto kName = [](const auto& info) {
  std::string name = info.param.filename().string();
  std::ranges::replace(name, '.', '_');
  return name;
};
INSTANTIATE_TEST_SUITE_P(Corpus, Steering, ::testing::ValuesIn(inputs("steering")), kName);
INSTANTIATE_TEST_SUITE_P(Corpus, Http, ::testing::ValuesIn(inputs("http")), kName);
INSTANTIATE_TEST_SUITE_P(Corpus, Infer, ::testing::ValuesIn(inputs("infer")), kName);
INSTANTIATE_TEST_SUITE_P(Corpus, Doors, ::testing::ValuesIn(inputs("doors")), kName);
INSTANTIATE_TEST_SUITE_P(Corpus, Config, ::testing::ValuesIn(inputs("config")), kName);
INSTANTIATE_TEST_SUITE_P(Corpus, Serve, ::testing::ValuesIn(inputs("serve")), kName);
INSTANTIATE_TEST_SUITE_P(Corpus, Text, ::testing::ValuesIn(inputs("text")), kName);
INSTANTIATE_TEST_SUITE_P(Corpus, Formats, ::testing::ValuesIn(inputs("formats")), kName);
INSTANTIATE_TEST_SUITE_P(Corpus, Pictures, ::testing::ValuesIn(inputs("pictures")), kName);

}  // namespace
}  // namespace serin::fuzz
