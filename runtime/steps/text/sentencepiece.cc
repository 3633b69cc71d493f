// sentencepiece.cc: reads a .model file of SentencePiece (sentencepiece_model.proto), Unigram or BPE.
//
// Debian's libsentencepiece is not used: it exports 1,287 symbols of its own copy of protobuf that libprotobuf exports, too, and the two would
// call each other in one process. The readers of trie, charsmap and wire format are here anyway.
//
// Special tokens are never found in the text of a client, as with SentencePiece itself; transformers does find them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <span>

#include "runtime/base/wire.h"
#include "runtime/steps/text/parts.h"
#include "runtime/steps/text/sentencepiece_normalizer.h"
#include "runtime/steps/text/tokenizer_config.h"

namespace serin::steps::text {
namespace {

enum class PieceType : uint8_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
constexpr int64_t kUnigramType = 1, kBpeType = 2;

struct SentencePieceFile {
  std::vector<std::string> pieces;
  std::vector<float> scores;
  std::vector<PieceType> types;
  int64_t model_type = kUnigramType;
  bool byte_fallback = false, spaces_behind = false;
  bool space_in_front = true, remove_extra_spaces = true, mark_spaces = true;
  std::string charsmap;

  bool is(size_t id, PieceType type) const { return types[id] == type; }
  int32_t find(std::string_view piece) const {
    const auto found = std::ranges::find(pieces, piece);
    return found == pieces.end() ? -1 : static_cast<int32_t>(found - pieces.begin());
  }
};

void read_piece(wire::Message message, SentencePieceFile& file) {
  std::string_view piece;
  float score = 0;
  int64_t type = 1;
  while (message.next()) {
    if (message.field() == 1) piece = message.text();
    if (message.field() == 2) score = message.number();
    if (message.field() == 3) type = message.integer();
  }
  if (piece.empty() || type < 1 || type > 6) return message.fail("a piece without a text, or of an unknown type");
  file.pieces.emplace_back(piece);
  file.scores.push_back(score);
  file.types.push_back(static_cast<PieceType>(type));
}

void read_trainer(wire::Message message, SentencePieceFile& file) {
  while (message.next()) {
    if (message.field() == 3) file.model_type = message.integer();
    if (message.field() == 24) file.spaces_behind = message.integer() != 0;
    if (message.field() == 35) file.byte_fallback = message.integer() != 0;
  }
}

void read_cleaning(wire::Message message, SentencePieceFile& file) {
  while (message.next()) {
    if (message.field() == 2) file.charsmap = message.chars();
    if (message.field() == 3) file.space_in_front = message.integer() != 0;
    if (message.field() == 4) file.remove_extra_spaces = message.integer() != 0;
    if (message.field() == 5) file.mark_spaces = message.integer() != 0;
  }
}

Result<SentencePieceFile> read_sentencepiece_file(std::string_view contents) {
  SentencePieceFile file;
  const wire::Bytes bytes = std::as_bytes(std::span(contents));
  wire::Decoding decoding{.begin = bytes.data(), .message_limit = static_cast<size_t>(kMostTokens)};
  wire::Message message(decoding, "ModelProto", bytes);
  while (message.next()) {
    if (message.field() == 1) read_piece(message.message("SentencePiece"), file);
    if (message.field() == 2) read_trainer(message.message("TrainerSpec"), file);
    if (message.field() == 3) read_cleaning(message.message("NormalizerSpec"), file);
  }
  if (decoding.error) return *decoding.error;
  Error damaged{Code::kCorrupt, "a model without pieces, with one twice, or without exactly one unknown piece"};
  auto sorted = file.pieces;
  std::ranges::sort(sorted);
  if (std::ranges::count(file.types, PieceType::kUnknown) != 1 || std::ranges::adjacent_find(sorted) != sorted.end()) return damaged;
  if (file.model_type != kUnigramType && file.model_type != kBpeType)
    return Error{Code::kUnsupported, fmt::format("trainer_spec.model_type: {} is neither Unigram (1) nor BPE (2)", file.model_type)};
  if (file.spaces_behind) return Error{Code::kUnsupported, "trainer_spec.treat_whitespace_as_suffix"};
  if (std::ranges::count(file.types, PieceType::kUnused) > 0) return Error{Code::kUnsupported, "pieces of type UNUSED"};
  if (file.byte_fallback)
    for (int byte = 0; byte < 256; ++byte)
      if (!std::ranges::binary_search(sorted, fmt::format("<0x{:02X}>", byte)))
        return Error{Code::kCorrupt, fmt::format("no piece for byte {}", byte)};
  return file;
}

/// The scores that the search compares: a piece of the user always wins.
Result<std::unique_ptr<Model>> make_unigram_of(const SentencePieceFile& file, bool fairseq) {
  float highest = FLT_MIN;
  for (size_t id = 0; id < file.pieces.size(); ++id)
    if (file.is(id, PieceType::kNormal)) highest = std::max(highest, file.scores[id]);
  UnigramRules rules;
  rules.byte_fallback = file.byte_fallback;
  rules.like_sentencepiece = true;
  const auto add = [&rules](const std::string& token, double score, bool hidden) {
    rules.tokens.push_back(token);
    rules.scores.push_back(score);
    rules.hidden.push_back(hidden);
  };
  if (fairseq)  // XLM-R: four special tokens of its own, then the pieces behind <unk>, <s> and </s>, then the mask
    for (const char* token : {"<s>", "<pad>", "</s>", "<unk>"}) add(token, 0, true);
  for (size_t id = fairseq ? 3 : 0; id < file.pieces.size(); ++id) {
    const bool user_defined = file.is(id, PieceType::kUserDefined);
    const double score =
        user_defined ? static_cast<double>(static_cast<float>(file.pieces[id].size()) * highest) - 0.1 : double{file.scores[id]};
    add(file.pieces[id], score, !user_defined && !file.is(id, PieceType::kNormal));
    if (file.is(id, PieceType::kUnknown)) rules.unknown = static_cast<int32_t>(rules.tokens.size()) - 1;
  }
  if (fairseq) {
    add("<mask>", 0, true);
    rules.unknown = 3;
  }
  return make_unigram(std::move(rules));
}

Result<std::unique_ptr<Model>> make_bpe_of(const SentencePieceFile& file) {
  ScoredBpeRules rules;
  rules.tokens = file.pieces;
  rules.scores = file.scores;
  rules.byte_fallback = file.byte_fallback;
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    rules.whole.push_back(file.is(id, PieceType::kUserDefined));
    rules.hidden.push_back(!rules.whole.back() && !file.is(id, PieceType::kNormal));
    if (file.is(id, PieceType::kUnknown)) rules.unknown = static_cast<int32_t>(id);
  }
  return make_scored_bpe(std::move(rules));
}

Result<std::string> style_of(const TokenizerConfig& config, const LoadOptions& options) {
  constexpr std::array<std::string_view, 4> kStyles = {"none", "llama", "t5", "xlm-r"};
  if (options.style) {
    if (std::ranges::find(kStyles, *options.style) == kStyles.end())
      return invalid(fmt::format("style '{}' is none of none, llama, t5, xlm-r", *options.style));
    return *options.style;
  }
  const std::string name = config.python_class.value_or("");
  if (name.starts_with("Llama")) return std::string("llama");
  if (name.starts_with("T5")) return std::string("t5");
  if (name.starts_with("XLMRoberta")) return std::string("xlm-r");
  return std::string("none");
}

/// Where the special tokens of a style stand.
Result<Template> make_style(const std::string& style, const TokenizerConfig& config, const Vocabulary& vocabulary) {
  using StyleStep = TemplateStep::Kind;
  const auto special = [&vocabulary](const std::string& token, int64_t type) -> Result<TemplateStep> {
    const int32_t id = vocabulary.find(token);
    if (id < 0) return Error{Code::kCorrupt, fmt::format("the model has no piece '{}', which the style needs", token)};
    return TemplateStep{StyleStep::kSpecial, type, {id}};
  };
  Template result;
  if (style == "none") return result;
  const bool llama = style == "llama", xlm = style == "xlm-r";
  const bool begins = llama ? config.add_bos.value_or(true) : xlm;
  const bool ends = llama ? config.add_eos.value_or(false) : true;
  const std::string begin = config.begin.value_or("<s>"), end = config.end.value_or("</s>");
  const auto append = [&](std::vector<TemplateStep>& steps, StyleStep text, int64_t type, const std::string& front) -> Status {
    if (begins) {
      SERIN_TRY(auto step, special(front, type));
      steps.push_back(std::move(step));
    }
    steps.push_back({text, type, {}});
    if (ends) {
      SERIN_TRY(auto step, special(end, type));
      steps.push_back(std::move(step));
    }
    return {};
  };
  result.single.clear();
  SERIN_CHECK(append(result.single, StyleStep::kFirst, 0, begin));
  result.pair = result.single;
  SERIN_CHECK(append(result.pair, StyleStep::kSecond, llama ? 1 : 0, xlm ? end : begin));
  return result;
}

}  // namespace

LoadedParts load_sentencepiece(std::string_view contents, const std::string& config_text, const LoadOptions& options) {
  SERIN_TRY(const TokenizerConfig config, TokenizerConfig::read(config_text));
  SERIN_TRY(const std::string style, style_of(config, options));
  SERIN_TRY(const SentencePieceFile file, read_sentencepiece_file(contents));
  const bool fairseq = style == "xlm-r";
  if (fairseq && (file.model_type != kUnigramType || file.find("<unk>") != 0 || file.find("<s>") != 1 || file.find("</s>") != 2))
    return Error{Code::kUnsupported, "style xlm-r needs a Unigram model whose first pieces are <unk>, <s> and </s>"};

  auto parts = std::make_unique<TokenizerParts>();
  SentencePieceCleaning cleaning{
      .space_in_front = file.space_in_front, .remove_extra_spaces = file.remove_extra_spaces, .mark_spaces = file.mark_spaces};
  SERIN_TRY(cleaning.replacements, Charsmap::read(file.charsmap));
  for (size_t id = 0; id < file.pieces.size(); ++id)
    if (file.is(id, PieceType::kUserDefined)) cleaning.kept.push_back(file.pieces[id]);
  parts->normalizer = make_sentencepiece_normalizer(std::move(cleaning));
  SERIN_TRY(parts->model, file.model_type == kBpeType ? make_bpe_of(file) : make_unigram_of(file, fairseq));
  SERIN_TRY(parts->around, make_style(style, config, parts->model->vocabulary()));
  SERIN_TRY(parts->added, AddedTokens::make({}, nullptr));
  if (const int32_t pad = parts->model->vocabulary().find(config.padding.value_or("<pad>")); pad >= 0) parts->padding.id = pad;
  return parts;
}

}  // namespace serin::steps::text
