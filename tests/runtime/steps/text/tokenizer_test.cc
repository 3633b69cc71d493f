// Ids are those of the Python packages (make_tokenizers.py asked them), bad files and bad texts are refused, and long texts take no quadratic time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/steps/text/tokenizer.h"
#include "tests/runtime/steps/text/drawn_text.h"

namespace serin::steps::text {
namespace {

namespace fs = std::filesystem;

const fs::path kTexts = fs::path(SERIN_TEST_DATA) / "text";

std::string contents_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

fs::path file_of(const std::string& folder) {
  for (const char* name : {"tokenizer.json", "vocab.txt", "spiece.model"})
    if (fs::exists(kTexts / folder / name)) return kTexts / folder / name;
  return {};
}

LoadOptions options_of(const std::string& folder) {
  std::string style = contents_of(kTexts / folder / "style");
  if (style.empty()) return {};
  return {.style = style.substr(0, style.find('\n'))};
}

std::shared_ptr<const Tokenizer> tokenizer_of(const std::string& folder) {
  auto loaded = Tokenizer::load(file_of(folder).string(), options_of(folder));
  EXPECT_TRUE(loaded) << loaded.error().message;
  return loaded ? *loaded : nullptr;
}

std::vector<std::string> folders() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kTexts))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

uint32_t hashed(const Encoding& encoding, bool types) {
  uint32_t hash = 0x811C9DC5;
  const auto add = [&hash](const std::vector<int64_t>& numbers) {
    for (const int64_t number : numbers)
      for (int byte = 0; byte < 4; ++byte) hash = (hash ^ (static_cast<uint32_t>(number) >> (8 * byte) & 0xFF)) * 0x01000193;
  };
  add(encoding.ids);
  if (types) add(encoding.types);
  return hash;
}

class Peers : public testing::TestWithParam<std::string> {};

TEST_P(Peers, HaveTheSameIds) {
  const DrawnText drawn((kTexts / "alphabets.txt").string());
  const auto tokenizer = tokenizer_of(GetParam());
  ASSERT_TRUE(tokenizer);
  std::ifstream cases(kTexts / GetParam() / "cases.txt");
  std::string kind, shape;
  uint64_t first = 0, count = 0, compared = 0, different = 0;
  for (int64_t max_length = 0; cases >> kind >> first >> count >> shape >> max_length; compared += count) {
    for (uint64_t number = first; number < first + count; ++number) {
      const bool is_pair = shape == "pairs";
      const std::string text = drawn.text(kind, number), pair = is_pair ? drawn.text(kind, number + 1) : "";
      EncodeOptions options;
      if (max_length > 0) options.max_length = max_length;
      const auto encoding = tokenizer->encode(text, is_pair ? std::optional<std::string_view>(pair) : std::nullopt, options);
      ASSERT_TRUE(encoding) << encoding.error().message;
      std::string expected;
      cases >> expected;
      if (fmt::format("{:08x}", hashed(*encoding, is_pair)) == expected) continue;
      if (++different < 4)
        ADD_FAILURE() << kind << " " << number << " (" << shape << ", " << max_length << "): " << text << "\nids "
                      << fmt::format("{}", fmt::join(encoding->ids, " "));
    }
  }
  EXPECT_EQ(different, 0U);
  EXPECT_GE(compared, 1200U);
}

INSTANTIATE_TEST_SUITE_P(Text, Peers, testing::ValuesIn(folders()), [](const auto& folder) { return folder.param; });

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const auto tokenizer = tokenizer_of("bert");
  for (const std::string_view text : {"abc\xff", "abc\xed\xa0\x80", "abc\xc0\xaf", "abc\xf4\x90\x80\x80", "abc\xe4\xbd"}) {
    const auto refused = tokenizer->encode(text);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_EQ(refused.error().message, "the text is not UTF-8: byte 3");
  }
  EXPECT_FALSE(tokenizer->encode("abc", "\xff"));
}

TEST(Tokenizer, CutsOrRefusesTextsOverTheLimit) {
  const auto tokenizer = tokenizer_of("bert");
  const auto whole = tokenizer->encode("the data is here");
  ASSERT_TRUE(whole);
  ASSERT_GT(whole->ids.size(), 5U);
  const auto cut = tokenizer->encode("the data is here", std::nullopt, {.max_length = 4});
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->ids, (std::vector<int64_t>{whole->ids[0], whole->ids[1], whole->ids[2], whole->ids.back()}));
  const auto refused = tokenizer->encode("the data is here", std::nullopt, {.max_length = 4, .truncate = false});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTooLarge);
  const auto no_room = tokenizer->encode("the", std::nullopt, {.max_length = 1});
  ASSERT_FALSE(no_room);
  EXPECT_EQ(no_room.error().message, "max_length is 1, and the template alone has 2 tokens");
  const auto bare = tokenizer->encode("the data is here", std::nullopt, {.special_tokens = false});
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->ids.size() + 2, whole->ids.size());
  const auto empty = tokenizer->encode("");
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->ids, (std::vector<int64_t>{*tokenizer->find("[CLS]"), *tokenizer->find("[SEP]")}));
}

TEST(Tokenizer, PadsOnTheSideOfTheFile) {
  const auto tokenizer = tokenizer_of("bert");
  auto encoding = tokenizer->encode("the");
  ASSERT_TRUE(encoding);
  const size_t size = encoding->ids.size();
  tokenizer->pad(*encoding, 6);
  EXPECT_EQ(encoding->ids.size(), 6U);
  EXPECT_EQ(encoding->types.size(), 6U);
  EXPECT_EQ(std::ranges::count(encoding->mask, 1), static_cast<ptrdiff_t>(size));
  EXPECT_EQ(encoding->mask.back(), 0);
  EXPECT_EQ(encoding->ids.back(), tokenizer->pad_id());
  EXPECT_EQ(tokenizer->pad_id(), tokenizer->find("[PAD]"));
}

TEST(Tokenizer, AnswersThreadsAlike) {
  const DrawnText drawn((kTexts / "alphabets.txt").string());
  const auto tokenizer = tokenizer_of("gpt2");
  std::vector<std::vector<uint32_t>> answers(4);
  std::vector<std::thread> threads;
  for (auto& answer : answers)
    threads.emplace_back([&] {
      for (uint64_t number = 0; number < 300; ++number)
        if (const auto encoding = tokenizer->encode(drawn.text("mixed", number))) answer.push_back(hashed(*encoding, false));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answers[0].size(), 300U);
  for (const auto& answer : answers) EXPECT_EQ(answer, answers[0]);
}

/// Each takes less than a second. With a quadratic step the longest ones would take hours.
TEST(Tokenizer, M2_ReadsLongTextsInLinearTime) {
  constexpr size_t kSize = 10'000'000;
  const auto repeated = [](std::string_view unit, size_t size) {
    std::string text;
    while (text.size() + unit.size() <= size) text += unit;
    return text;
  };
  for (const std::string& folder : folders()) {
    SCOPED_TRACE(folder);
    const auto tokenizer = tokenizer_of(folder);
    ASSERT_TRUE(tokenizer);
    const bool one_word = folder == "llama2" || folder.starts_with("sp_");
    for (const std::string_view unit : {"a", " ", "ab1 ", "\u0301\u0323", "\u4f60", "[MASK]", "'"}) {
      const auto encoding = tokenizer->encode(repeated(unit, one_word ? kSize / 50 : kSize / 20));
      ASSERT_TRUE(encoding) << unit << ": " << encoding.error().message;
    }
  }
  EXPECT_TRUE(tokenizer_of("bert")->encode(repeated("a", kSize)));
  EXPECT_TRUE(tokenizer_of("gpt2")->encode(repeated("a", kSize)));
  const auto refused = tokenizer_of("bert")->encode(repeated("a", kSize + kSize / 10));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTooLarge);
}

}  // namespace
}  // namespace serin::steps::text
