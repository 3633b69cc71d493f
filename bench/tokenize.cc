// tokenize.cc: Serin's side of bench/tokenizers_bench.py. It reads texts (each: its length in 4 bytes, then its bytes), and prints ids or times.
//
//   tokenize TOKENIZER TEXTS ids [MAX_LENGTH]      a line of ids for each text
//   tokenize TOKENIZER TEXTS pairs [MAX_LENGTH]    a line "ids / types" for each two texts
//   tokenize TOKENIZER TEXTS time                  for each line of stdin: encodes all texts once, prints the seconds

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/steps/text/tokenizer.h"

namespace {

using serin::steps::text::Tokenizer;

serin::Result<std::vector<std::string>> read_texts(const std::string& path) {
  SERIN_TRY(const std::string bytes, serin::read_file(path, size_t{1} << 30));
  std::vector<std::string> texts;
  for (size_t at = 0; at < bytes.size();) {
    uint32_t size = 0;
    if (bytes.size() - at < sizeof(size)) return serin::invalid("a text without a length");
    std::memcpy(&size, bytes.data() + at, sizeof(size));
    at += sizeof(size);
    if (bytes.size() - at < size) return serin::invalid("a text that is cut off");
    texts.push_back(bytes.substr(at, size));
    at += size;
  }
  return texts;
}

serin::Status run(const std::string& file, const std::string& texts_file, std::string_view what, std::optional<int64_t> max_length) {
  SERIN_TRY(const auto tokenizer, Tokenizer::load(file));
  SERIN_TRY(const auto texts, read_texts(texts_file));
  if (what == "time") {
    std::puts("ready");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
      const auto begin = std::chrono::steady_clock::now();
      for (const std::string& text : texts) SERIN_CHECK(tokenizer->encode(text));
      fmt::print("{}\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      std::fflush(stdout);
    }
    return {};
  }
  const bool pairs = what == "pairs";
  for (size_t i = 0; i + (pairs ? 1 : 0) < texts.size(); i += pairs ? 2 : 1) {
    SERIN_TRY(const auto encoding, tokenizer->encode(texts[i], pairs ? std::optional<std::string_view>(texts[i + 1]) : std::nullopt,
                                                     {.max_length = max_length}));
    fmt::print("{}", fmt::join(encoding.ids, " "));
    if (pairs) fmt::print(" / {}", fmt::join(encoding.types, " "));
    fmt::print("\n");
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("tokenize TOKENIZER TEXTS ids|pairs|time [MAX_LENGTH]\n", stderr);
    return 2;
  }
  const auto max_length = argc > 4 ? std::optional<int64_t>(std::stoll(argv[4])) : std::nullopt;
  if (const auto status = run(argv[1], argv[2], argv[3], max_length); !status) {
    fmt::print(stderr, "{}\n", status.error().message);
    return 1;
  }
  return 0;
}
