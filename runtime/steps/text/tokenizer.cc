// tokenizer.cc: loads a file by its contents, and runs the parts: added tokens, normalizer, pre-tokenizer, model, truncation, template.

#include "runtime/steps/text/tokenizer.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/base/utf8.h"
#include "runtime/steps/text/parts.h"

namespace serin::steps::text {
namespace {

constexpr size_t kLargestFile = size_t{256} << 20;
constexpr size_t kLargestConfig = size_t{4} << 20;

/// How many tokens of each text remain.
struct Lengths {
  size_t first, second;
};

/// `room`: tokens of both texts together. The shorter text stays whole as long as it has less than half.
Lengths longest_first(Lengths now, size_t room) {
  const bool swapped = now.first > now.second;
  if (swapped) std::swap(now.first, now.second);
  now.second = now.first > room ? now.first : std::max(now.first, room - now.first);
  if (now.first + now.second > room) {
    now.first = room / 2;
    now.second = now.first + room % 2;
  }
  if (swapped) std::swap(now.first, now.second);
  return now;
}

Result<Lengths> shortened(Lengths now, size_t room, const Truncation& rules, bool is_pair) {
  if (now.first + now.second <= room) return now;
  const size_t over = now.first + now.second - room;
  if (room == 0) return Lengths{0, 0};
  if (rules.strategy == Truncation::Strategy::kLongestFirst) return is_pair ? longest_first(now, room) : Lengths{room, 0};
  const bool first = rules.strategy == Truncation::Strategy::kOnlyFirst;
  if (!first && !is_pair) return invalid("the file cuts only the second text (truncation.strategy), and there is none");
  size_t& cut = first ? now.first : now.second;
  if (cut <= over) return invalid(fmt::format("the {} text has {} tokens, too few to cut {}", first ? "first" : "second", cut, over));
  cut -= over;
  return now;
}

void cut(std::vector<int32_t>& ids, size_t length, bool left) {
  if (length >= ids.size()) return;
  if (left)
    ids.erase(ids.begin(), ids.end() - static_cast<ptrdiff_t>(length));
  else
    ids.resize(length);
}

size_t special_count(const std::vector<TemplateStep>& steps) {
  size_t count = 0;
  for (const TemplateStep& step : steps) count += step.ids.size();
  return count;
}

bool looks_like_json(std::string_view contents) {
  const size_t at = contents.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && contents[at] == '{' && contents.find('"') != std::string_view::npos;
}

/// Its first field is a piece, and scores have zero bytes.
bool looks_like_sentencepiece(std::string_view contents) {
  return contents.starts_with('\n') && contents.find('\0') != std::string_view::npos;
}

/// One call of encode(): the texts become ids here.
class Run {
 public:
  explicit Run(const Normalizer* normalizer, const PreTokenizer* pre_tokenizer, const Model& model, const AddedTokens& added, size_t enough)
      : normalizer_(normalizer), pre_tokenizer_(pre_tokenizer), model_(model), added_(added), enough_(enough) {}

  Result<std::vector<int32_t>> ids(std::string_view text) {
    ids_.clear();
    const char* const begin = text.data();
    SERIN_CHECK(added_.split(text, false, [&](std::string_view part, int32_t id) -> Status {
      if (id < 0) return normalize(part, part.data() == begin);
      ids_.push_back(id);
      return {};
    }));
    return std::move(ids_);
  }

 private:
  Status normalize(std::string_view part, bool first) {
    if (ids_.size() >= enough_) return {};
    std::string normalized;
    if (normalizer_) {
      normalized = part;
      SERIN_CHECK(normalizer_->apply(normalized));
      part = normalized;
    }
    const char* const begin = part.data();
    return added_.split(part, true, [&](std::string_view words, int32_t id) -> Status {
      if (id < 0) return pre_tokenize(words, first && words.data() == begin);
      ids_.push_back(id);
      return {};
    });
  }

  Status pre_tokenize(std::string_view part, bool first) {
    if (!pre_tokenizer_) return tokenize(part);
    pieces_.now.assign(1, Piece{part, first});
    SERIN_CHECK(pre_tokenizer_->split(pieces_));
    for (const Piece& piece : pieces_.now) {
      if (ids_.size() >= enough_) break;
      SERIN_CHECK(tokenize(piece.text));
    }
    pieces_.made.clear();
    return {};
  }

  Status tokenize(std::string_view word) {
    if (model_.tokenize(word, ids_, space_)) return {};
    return Error{Code::kUnsupported, fmt::format("no token for '{}', and the file names no unknown token", utf8_prefix(word, 40))};
  }

  const Normalizer* normalizer_;
  const PreTokenizer* pre_tokenizer_;
  const Model& model_;
  const AddedTokens& added_;
  size_t enough_;  // ids behind these are cut off anyway
  std::vector<int32_t> ids_;
  Pieces pieces_;
  Workspace space_;
};

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const std::string& path, const LoadOptions& options) {
  SERIN_TRY(const std::string contents, read_file(path, kLargestFile));
  std::string config;
  if (auto beside = read_file((std::filesystem::path(path).parent_path() / "tokenizer_config.json").string(), kLargestConfig))
    config = std::move(*beside);
  else if (beside.error().code != Code::kNotFound)
    return beside.error();
  auto tokenizer = read(contents, config, options);
  if (!tokenizer) return tokenizer.error().in(path);
  return tokenizer;
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::read(std::string_view contents, const std::string& config, const LoadOptions& options) {
  SERIN_TRY(auto parts, looks_like_json(contents)            ? load_tokenizer_json(contents)
                        : looks_like_sentencepiece(contents) ? load_sentencepiece(contents, config, options)
                                                             : load_vocab_txt(contents, config, options));
  parts->max_text_bytes = options.max_text_bytes;
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(parts)));  // NOLINT: the constructor is private
}

Result<Encoding> Tokenizer::encode(std::string_view text, std::optional<std::string_view> pair, const EncodeOptions& options) const {
  for (const std::string_view one : {text, pair.value_or("")}) {
    if (one.size() > parts_->max_text_bytes) {
      return Error{Code::kTooLarge, fmt::format("a text of {} bytes; at most {} are allowed", one.size(), parts_->max_text_bytes)};
    }
    if (!simdjson::validate_utf8(one.data(), one.size())) {
      size_t at = 0;
      while (const size_t size = utf8_sequence(one.substr(at))) at += size;
      return invalid(fmt::format("the text is not UTF-8: byte {}", at));
    }
  }
  const auto& steps = pair ? parts_->around.pair : parts_->around.single;
  const size_t added = options.special_tokens ? special_count(steps) : 0;
  const auto limit = options.max_length ? options.max_length : parts_->truncation.max_length;
  if (limit && (*limit < 0 || static_cast<size_t>(*limit) < added))
    return invalid(fmt::format("max_length is {}, and the template alone has {} tokens", *limit, added));
  const size_t room = limit ? static_cast<size_t>(*limit) - added : SIZE_MAX;

  const bool stops = options.truncate && !pair && !parts_->truncation.left;
  Run run(parts_->normalizer.get(), parts_->pre_tokenizer.get(), *parts_->model, parts_->added, stops ? room : SIZE_MAX);
  SERIN_TRY(std::vector<int32_t> first, run.ids(text));
  std::vector<int32_t> second;
  if (pair) {
    SERIN_TRY(second, run.ids(*pair));
  }
  if (first.size() + second.size() > room) {
    if (!options.truncate)
      return Error{Code::kTooLarge, fmt::format("{} tokens; at most {} are allowed", first.size() + second.size() + added, *limit)};
    SERIN_TRY(const Lengths lengths, shortened({first.size(), second.size()}, room, parts_->truncation, pair.has_value()));
    cut(first, lengths.first, parts_->truncation.left);
    cut(second, lengths.second, parts_->truncation.left);
  }

  Encoding encoding;
  encoding.ids.reserve(first.size() + second.size() + added);
  encoding.types.reserve(encoding.ids.capacity());
  for (const TemplateStep& step : steps) {
    if (step.kind == TemplateStep::Kind::kSpecial && !options.special_tokens) continue;
    const auto& ids = step.kind == TemplateStep::Kind::kFirst ? first : step.kind == TemplateStep::Kind::kSecond ? second : step.ids;
    encoding.ids.insert(encoding.ids.end(), ids.begin(), ids.end());
    encoding.types.resize(encoding.ids.size(), step.type);
  }
  encoding.mask.assign(encoding.ids.size(), 1);
  return encoding;
}

void Tokenizer::pad(Encoding& encoding, size_t length) const {
  if (encoding.ids.size() >= length) return;
  const size_t count = length - encoding.ids.size();
  const auto add = [&](std::vector<int64_t>& to, int64_t value) { to.insert(parts_->padding.left ? to.begin() : to.end(), count, value); };
  add(encoding.ids, parts_->padding.id);
  add(encoding.types, parts_->padding.type);
  add(encoding.mask, 0);
}

const Padding& Tokenizer::padding() const { return parts_->padding; }

std::optional<int64_t> Tokenizer::find(std::string_view token) const {
  int32_t id = parts_->added.find(token);
  if (id < 0) id = parts_->model->vocabulary().find(token);
  return id < 0 ? std::nullopt : std::optional<int64_t>(id);
}

int64_t Tokenizer::vocabulary_size() const {
  int64_t size = parts_->added.end_of_ids();
  for (const auto& token : parts_->model->vocabulary().tokens()) size = std::max(size, int64_t{token.id} + 1);
  return size;
}

}  // namespace serin::steps::text
