// vocab_txt.cc: BERT's vocab.txt: the id of a token is its line. All else is BERT's own: its cleaning, its words, [CLS] text [SEP].
//
// ERNIE's vocab.txt of PaddleNLP has the same rules. The answers are those of transformers 5, whose BertTokenizer runs the Rust library. The
// older Python class lower-cases a final Greek sigma as such, and drops code points that its Unicode does not know.

#include <fmt/format.h>

#include <array>

#include "runtime/base/utf8.h"
#include "runtime/steps/text/parts.h"
#include "runtime/steps/text/tokenizer_config.h"

namespace serin::steps::text {
namespace {

Result<Vocabulary> read_lines(std::string_view contents) {
  if (!is_utf8(contents)) return Error{Code::kCorrupt, "a vocabulary that is not UTF-8"};
  Vocabulary vocabulary;
  for (int32_t line = 0; !contents.empty(); ++line) {
    if (line >= kMostTokens) return Error{Code::kTooLarge, fmt::format("more than {} tokens", kMostTokens)};
    const size_t end = std::min(contents.find_first_of("\r\n"), contents.size());
    vocabulary.set(contents.substr(0, end), line);
    const bool both = contents.substr(end).starts_with("\r\n");
    contents.remove_prefix(std::min(contents.size(), end + (both ? 2 : 1)));
  }
  return vocabulary;
}

}  // namespace

LoadedParts load_vocab_txt(std::string_view contents, const std::string& config_text, const LoadOptions& options) {
  SERIN_TRY(const TokenizerConfig config, TokenizerConfig::read(config_text));
  SERIN_TRY(Vocabulary vocabulary, read_lines(contents));
  const auto id_of = [&vocabulary](const std::string& token, std::string_view role) -> Result<int32_t> {
    const int32_t id = vocabulary.find(token);
    if (id < 0)
      return Error{Code::kCorrupt,
                   fmt::format("no tokenizer.json, no .model, and as a vocab.txt it lacks the token '{}' ({})", token, role)};
    return id;
  };
  WordPieceRules words;
  words.unknown = config.unknown.value_or("[UNK]");
  SERIN_CHECK(id_of(words.unknown, "unk_token"));
  SERIN_TRY(const int32_t begin, id_of(config.classification.value_or("[CLS]"), "cls_token"));
  SERIN_TRY(const int32_t end, id_of(config.separator.value_or("[SEP]"), "sep_token"));

  auto parts = std::make_unique<TokenizerParts>();
  std::vector<AddedToken> special;
  for (const std::string& content : {words.unknown, config.separator.value_or("[SEP]"), config.padding.value_or("[PAD]"),
                                     config.classification.value_or("[CLS]"), config.mask.value_or("[MASK]")})
    if (const int32_t id = vocabulary.find(content); id >= 0) special.push_back({.content = content, .id = id});
  if (const int32_t id = vocabulary.find(config.padding.value_or("[PAD]")); id >= 0) parts->padding.id = id;

  BertCleaning cleaning;
  const auto first_of = [](const auto& asked, const auto& said, bool otherwise) { return asked ? *asked : said.value_or(otherwise); };
  cleaning.lower_case = first_of(options.lower_case, config.lower_case, true);
  cleaning.strip_accents = first_of(options.strip_accents, config.strip_accents, cleaning.lower_case);
  cleaning.ideographs = first_of(options.split_ideographs, config.split_ideographs, true);
  parts->normalizer = make_bert_normalizer(cleaning);
  parts->pre_tokenizer = make_bert_splitter();
  SERIN_TRY(parts->added, AddedTokens::make(std::move(special), nullptr));
  SERIN_TRY(parts->model, make_word_piece(std::move(vocabulary), words));
  using Kind = TemplateStep::Kind;
  parts->around.single = {{Kind::kSpecial, 0, {begin}}, {Kind::kFirst, 0, {}}, {Kind::kSpecial, 0, {end}}};
  parts->around.pair = parts->around.single;
  parts->around.pair.push_back({Kind::kSecond, 1, {}});
  parts->around.pair.push_back({Kind::kSpecial, 1, {end}});
  return parts;
}

}  // namespace serin::steps::text
