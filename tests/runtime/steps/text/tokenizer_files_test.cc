// Files that are damaged, that contradict themselves, or that ask for what is missing: each is refused with its place, and none ends the program.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/steps/text/tokenizer.h"

namespace serin::steps::text {
namespace {

namespace fs = std::filesystem;

class TokenizerFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() / fmt::format("serin_tokenizer_files_{}_{}", getpid(), testing::UnitTest::GetInstance()->random_seed());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<std::shared_ptr<const Tokenizer>> load(const std::string& name, const std::string& contents,
                                                const LoadOptions& options = {}) const {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << contents;
    auto loaded = Tokenizer::load(path.string(), options);
    fs::remove(path);
    if (loaded) return loaded;
    Error error = loaded.error();
    EXPECT_TRUE(error.message.starts_with(path.string() + ": ")) << error.message;
    error.message.erase(0, path.string().size() + 2);
    return error;
  }

  fs::path folder_;
};

const std::string kModel =
    R"({"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"[UNK]":0,"a":1,"##b":2}})";

std::string json_with(const std::string& key, const std::string& value) {
  return fmt::format(R"({{"version":"1.0","model":{}{}}})", key == "model" ? value : kModel,
                     key == "model" ? "" : fmt::format(R"(,"{}":{})", key, value));
}

TEST_F(TokenizerFiles, M2_AreRefusedWithTheirPlace) {
  struct Row {
    std::string key, value, message;
    Code code = Code::kCorrupt;
  };
  const std::vector<Row> rows = {
      {"normalizer", R"({"type":"Magic"})", "normalizer.type: the normalizer 'Magic' is unknown", Code::kUnsupported},
      {"normalizer", R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"NFC","x":1}]})",
       "normalizer.normalizers[1].x: unknown here", Code::kUnsupported},
      {"normalizer", R"({"type":"Strip","strip_left":1,"strip_right":true})", "normalizer.strip_left: true or false is expected"},
      {"normalizer", R"({"type":"Replace","pattern":{"Regex":"("},"content":""})",
       "normalizer.pattern: regular expression '(': missing closing parenthesis"},
      {"normalizer", R"({"type":"Replace","pattern":{"Regex":"[a[b]]"},"content":""})",
       "normalizer.pattern: regular expression '[a[b]]': a class in a class is not supported", Code::kUnsupported},
      {"normalizer", R"({"type":"Replace","pattern":{"String":""},"content":""})", "normalizer.pattern: an empty pattern"},
      {"normalizer", R"({"type":"Precompiled","precompiled_charsmap":"%%%"})", "normalizer.precompiled_charsmap: not base64"},
      {"normalizer", R"({"type":"Precompiled","precompiled_charsmap":"/////w=="})",
       "normalizer.precompiled_charsmap: the table of replacements (precompiled_charsmap) is damaged"},
      {"normalizer", "[]", "normalizer: an object is expected"},
      {"pre_tokenizer", R"({"type":"Split","pattern":{"String":"a"},"behavior":"Sideways","invert":false})",
       "pre_tokenizer.behavior: 'Sideways' is unknown", Code::kUnsupported},
      {"pre_tokenizer", R"({"type":"Sequence","pretokenizers":[{"type":"UnicodeScripts"}]})",
       "pre_tokenizer.pretokenizers[0].type: the pre-tokenizer 'UnicodeScripts' is unknown", Code::kUnsupported},
      {"pre_tokenizer", R"({"type":"Metaspace","replacement":"ab"})", "pre_tokenizer.replacement: one character is expected"},
      {"post_processor", R"({"type":"BertProcessing","sep":["[SEP]",-1],"cls":["[CLS]",1]})",
       "post_processor.sep: the id -1 is not between 0 and 16777215"},
      {"post_processor",
       R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"X","type_id":0}}],"pair":[],"special_tokens":{}})",
       "post_processor.special_tokens.X: missing"},
      {"post_processor", R"({"type":"TemplateProcessing","single":[],"pair":[],"special_tokens":{}})",
       "post_processor.single: it must have the first text once, and no second one", Code::kUnsupported},
      {"added_tokens", R"([{"id":7,"content":"x","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}])",
       "added_tokens[0].id: 'x' has 7 here, but 3 by the vocabulary"},
      {"truncation", R"({"max_length":-1,"strategy":"LongestFirst","stride":0})", "truncation.max_length: negative"},
      {"padding", R"({"pad_id":0,"direction":"Up"})", "padding.direction: 'Up' is unknown", Code::kUnsupported},
      {"model", R"({"type":"Oracle"})", "model.type: the model 'Oracle' is unknown", Code::kUnsupported},
      {"model", R"({"type":"BPE","vocab":{},"merges":[]})", "model: the vocabulary is empty"},
      {"model", R"({"type":"BPE","vocab":{"a":0},"merges":["a b c"]})", "model.merges[0]: two tokens with a space between are expected"},
      {"model", R"({"type":"BPE","vocab":{"a":0},"merges":[["a","b"]]})", "model: merges[0]: the vocabulary has no token 'b'"},
      {"model", R"({"type":"BPE","vocab":{"a":99999999999},"merges":[]})",
       "model.vocab.a: the id 99999999999 is not between 0 and 16777215"},
      {"model", R"({"type":"BPE","dropout":0.1,"vocab":{"a":0},"merges":[]})", "model.dropout: a random choice of merges; it must be null",
       Code::kUnsupported},
      {"model", R"({"type":"Unigram","unk_id":5,"vocab":[["a",0.0]]})", "model: unk_id is 5, but there are 1 tokens"},
      {"model", R"({"type":"Unigram","unk_id":0,"vocab":[]})", "model: the vocabulary is empty"},
      {"model", R"({"type":"Unigram","unk_id":0,"vocab":[["a"]]})", "model.vocab[0]: a token and its score are expected"},
      {"model", R"({"type":"WordPiece","unk_token":"?","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"a":0}})",
       "model: the vocabulary has no token '?', which stands for unknown words"},
      {"model", R"({"type":"WordPiece","unk_token":"a","continuing_subword_prefix":"##","max_input_chars_per_word":"x","vocab":{"a":0}})",
       "model.max_input_chars_per_word: an integer is expected"},
      {"surprise", "1", "surprise: unknown here", Code::kUnsupported},
      {"version", "2", "version: a string is expected"},
  };
  for (const Row& row : rows) {
    const auto refused = load("tokenizer.json", row.key == "version" ? R"({"version":2})" : json_with(row.key, row.value));
    ASSERT_FALSE(refused) << row.value;
    EXPECT_EQ(refused.error().message, row.message);
    EXPECT_EQ(refused.error().code, row.code) << row.message;
  }
  EXPECT_EQ(load("vocab.txt", "a\nb\n").error().message,
            "no tokenizer.json, no .model, and as a vocab.txt it lacks the token '[UNK]' (unk_token)");
  EXPECT_EQ(load("vocab.txt", "").error().code, Code::kCorrupt);
  EXPECT_EQ(load("vocab.txt", "\xff\n").error().message, "a vocabulary that is not UTF-8");
  EXPECT_FALSE(load("tokenizer.json", R"({"a":)"));
  EXPECT_EQ(Tokenizer::load((folder_ / "none").string()).error().code, Code::kNotFound);
}

TEST_F(TokenizerFiles, M2_DeepNestingIsRefused) {
  std::string normalizer = R"({"type":"NFC"})";
  for (int depth = 0; depth < 200; ++depth) normalizer = fmt::format(R"({{"type":"Sequence","normalizers":[{}]}})", normalizer);
  EXPECT_FALSE(load("tokenizer.json", json_with("normalizer", normalizer)));
}

std::vector<fs::path> all_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(SERIN_TEST_DATA) / "text"))
    if (const auto name = entry.path().filename(); name == "tokenizer.json" || name == "vocab.txt" || name == "spiece.model")
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

TEST_F(TokenizerFiles, M2_TruncatedOrDamagedOnesAreReadOrRefused) {
  std::mt19937 random(1);
  size_t read = 0, refused = 0;
  for (const fs::path& path : all_files()) {
    std::ifstream file(path, std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(file)), {});
    ASSERT_FALSE(whole.empty());
    for (int i = 0; i < 40; ++i) {
      std::string damaged = whole;
      if (i % 4 == 0)
        damaged.resize(random() % whole.size());
      else
        for (int flips = 0; flips < 1 + i % 7; ++flips) damaged[random() % damaged.size()] ^= static_cast<char>(1U << (random() % 8));
      const auto loaded = load(path.filename().string(), damaged, {.style = "none"});
      ++(loaded ? read : refused);
      if (loaded) static_cast<void>((*loaded)->encode("Hello, \u4f60\u597d [MASK] 123 \u00e9\u0301 caf\ufb01", "and another"));
    }
  }
  EXPECT_GT(read, 10U);
  EXPECT_GT(refused, 100U);
}

TEST_F(TokenizerFiles, OptionsComeBeforeTheConfigurationBesideThem) {
  const std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nabc\nABC\n\u00e4\na\n";
  const auto ids = [&](std::string_view text, const LoadOptions& options) {
    const auto loaded = load("vocab.txt", vocabulary, options);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return (*loaded)->encode(text, std::nullopt, {.special_tokens = false})->ids;
  };
  EXPECT_EQ(ids("ABC \u00c4", {}), (std::vector<int64_t>{4, 7}));
  EXPECT_EQ(ids("ABC \u00e4", {.lower_case = false}), (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(ids("ABC \u00c4", {.strip_accents = false}), (std::vector<int64_t>{4, 6}));
  std::ofstream(folder_ / "tokenizer_config.json") << R"({"do_lower_case": false, "cls_token": {"content": "[CLS]"}})";
  EXPECT_EQ(ids("ABC", {}), (std::vector<int64_t>{5}));
  EXPECT_EQ(ids("ABC", {.lower_case = true}), (std::vector<int64_t>{4}));
}

}  // namespace
}  // namespace serin::steps::text
