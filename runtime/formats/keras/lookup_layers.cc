// lookup_layers.cc: texts and categories: vocabularies, words, bins, and vectors of ones for them.
//
// A vocabulary is in the settings, or in a file of the archive. Before its words come the numbers of "no word" (the mask, where there is one) and of unknown words.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "runtime/formats/keras/layer.h"

namespace serin::formats::keras {

namespace {

constexpr size_t kVocabularyBytes = size_t{256} << 20;
constexpr int64_t kMostTokens = 1 << 24;

/// Counts by the weights that Keras learned for each place, "idf_weights".
ValueId weighted(Layer& layer, ValueId counts, int64_t depth) {
  const std::string path = layer.folder() + "vars/idf_weights";
  const auto weights = layer.shared().weights.constant(path);
  if (!weights) return layer.b().fail(weights.error().code, weights.error().message), kNone;
  if ((*weights)->shape != Shape{depth} || !is_float((*weights)->dtype))
    return layer.corrupt(fmt::format("weight '{}' does not fit {} tokens", path, depth)), kNone;
  graph::Builder& b = layer.b();
  return b.add(Op::kMul, {counts, b.cast(b.constant(path, *weights), DType::kFloat32)});
}

/// Ones at the place of each number of the last axis: "one_hot", "multi_hot", "count" or "tf_idf". [..., 1] counts as [...] for one_hot.
ValueId encoded(Layer& layer, ValueId ids, int64_t depth, const std::string& mode) {
  graph::Builder& b = layer.b();
  auto rank = b.rank(ids);
  if (!rank || depth < 1 || depth > kMostTokens) return layer.unsupported("a number of tokens that is none"), kNone;
  if (mode == "one_hot" && *rank > 1 && b.size(ids, *rank - 1) == 1) {
    ids = b.squeeze(ids, {static_cast<int64_t>(*rank) - 1});
    --*rank;
  }
  if (mode != "one_hot" && *rank == 1) {
    ids = b.unsqueeze(ids, {1});
    ++*rank;
  }
  List places(static_cast<size_t>(depth));
  std::iota(places.begin(), places.end(), int64_t{0});
  const ValueId hits = b.cast(
      b.add(Op::kEqual, {b.unsqueeze(b.cast(ids, DType::kInt64), {static_cast<int64_t>(*rank)}), b.integers(places)}), DType::kFloat32);
  if (mode == "one_hot") return hits;
  const graph::Attributes attributes{{"axes", List{static_cast<int64_t>(*rank) - 1}}, {"keepdims", int64_t{0}}};
  if (mode == "multi_hot") return b.add(Op::kReduceMax, {hits}, attributes);
  if (mode == "count") return b.add(Op::kReduceSum, {hits}, attributes);
  if (mode == "tf_idf") return weighted(layer, b.add(Op::kReduceSum, {hits}, attributes), depth);
  return layer.unsupported(fmt::format("output_mode '{}'", mode)), kNone;
}

/// The words of a lookup, and the number of the first.
struct Vocabulary {
  std::vector<std::string> words;
  List numbers;  ///< instead of words
  int64_t first = 1, unknown = 0;
  int64_t size() const { return first + static_cast<int64_t>(words.size() + numbers.size()); }
};

class Lookup {
 public:
  explicit Lookup(Layer& layer) : layer_(layer), b_(layer.b()), integers_(layer.class_name() == "IntegerLookup") {}

  /// Numbers of texts or integers.
  ValueId find(ValueId x, const Vocabulary& vocabulary) {
    graph::Attributes attributes{{"to", std::string("i64")}, {"default_int64", vocabulary.unknown}};
    List values(vocabulary.words.size() + vocabulary.numbers.size());
    std::iota(values.begin(), values.end(), vocabulary.first);
    attributes.emplace("values_int64s", values);
    if (integers_) {
      attributes.emplace("keys_int64s", vocabulary.numbers);
      return mask(x, b_.add(Op::kLabelEncoder, {b_.cast(x, DType::kInt64)}, std::move(attributes)));
    }
    if (b_.dtype(x) != DType::kString) return layer_.unsupported("its input is no text"), kNone;
    attributes.emplace("keys_strings", vocabulary.words);
    return mask(x, b_.add(Op::kLabelEncoder, {x}, std::move(attributes)));
  }

  /// The texts of numbers, where the layer looks up the other way.
  ValueId text_of(ValueId x, const Vocabulary& vocabulary) {
    if (integers_) return layer_.unsupported("the inverse of integers"), kNone;
    std::vector<std::string> words = vocabulary.words;
    List keys(words.size());
    std::iota(keys.begin(), keys.end(), vocabulary.first);
    if (vocabulary.first > vocabulary.unknown + 1 || has_mask_) {
      words.push_back(mask_token_);
      keys.push_back(0);
    }
    return b_.add(Op::kLabelEncoder, {b_.cast(x, DType::kInt64)},
                  {{"keys_int64s", keys},
                   {"values_strings", words},
                   {"default_string", layer_.text("oov_token", "[UNK]")},
                   {"to", std::string("str")}});
  }

  std::optional<Vocabulary> read(std::string_view mode) {
    Vocabulary vocabulary;
    const int64_t unknown = layer_.integer("num_oov_indices", 1);
    if (unknown != 1) return layer_.unsupported(fmt::format("{} numbers for unknown words", unknown)), std::nullopt;
    const Json mask = layer_.setting("mask_token");
    const bool text_layer = layer_.class_name() == "TextVectorization";
    has_mask_ = (text_layer || (mask && !mask.is_null())) && (mode == "int" || layer_.flag("invert"));
    mask_token_ = text_layer ? "" : mask.text_or("");
    mask_number_ = mask.integer().value_or(0);
    vocabulary.unknown = has_mask_ ? 1 : 0;
    vocabulary.first = vocabulary.unknown + 1;
    if (!fill(vocabulary)) return std::nullopt;
    drop_special(vocabulary);
    if (vocabulary.size() > kMostTokens) return layer_.unsupported("a vocabulary of this size"), std::nullopt;
    return vocabulary;
  }

  int64_t depth(const Vocabulary& vocabulary) const {
    if (!layer_.flag("pad_to_max_tokens") || !layer_.is_set("max_tokens")) return vocabulary.size();
    return layer_.integer("max_tokens", vocabulary.size());
  }

 private:
  bool fill(Vocabulary& vocabulary) {
    const Json given = layer_.setting("vocabulary");
    if (given.is_array()) {
      for (const Json& each : given.items()) {
        const auto word = each.text();
        const auto number = each.integer();
        if (integers_ ? !number : !word) return layer_.corrupt("'vocabulary' has an entry of a wrong kind"), false;
        integers_ ? vocabulary.numbers.push_back(*number) : vocabulary.words.push_back(*word);
      }
      return true;
    }
    if (given && !given.is_null()) return layer_.unsupported("a vocabulary in a file outside of the archive"), false;
    const std::string name = fmt::format("assets/{}vocabulary.txt", layer_.folder());
    auto text = layer_.shared().archive.read(name, kVocabularyBytes);
    if (!text) return layer_.b().fail(text.error().code, fmt::format("its vocabulary: {}", text.error().message)), false;
    for (size_t begin = 0; begin <= text->size();) {
      const size_t end = std::min(text->find('\n', begin), text->size());
      std::string word = text->substr(begin, end - begin);
      begin = end + 1;
      if (begin > text->size() && word.empty() && text->ends_with('\n')) break;
      if (!integers_) {
        vocabulary.words.push_back(std::move(word));
        continue;
      }
      const char* const last = word.data() + word.size();
      int64_t number = 0;
      if (const auto parsed = std::from_chars(word.data(), last, number); parsed.ec != std::errc() || parsed.ptr != last) {
        if (word == "[UNK]" || word.empty()) continue;
        return layer_.corrupt(fmt::format("'{}' has '{}', which is no integer", name, word)), false;
      }
      vocabulary.numbers.push_back(number);
    }
    return true;
  }

  /// A vocabulary may begin with the mask and the unknown word.
  void drop_special(Vocabulary& vocabulary) const {
    const std::string unknown = layer_.text("oov_token", "[UNK]");
    auto& words = vocabulary.words;
    if (words.size() >= 2 && words[0] == mask_token_ && words[1] == unknown)
      words.erase(words.begin(), words.begin() + 2);
    else if (!words.empty() && words[0] == unknown)
      words.erase(words.begin());
    auto& numbers = vocabulary.numbers;
    if (integers_ && !numbers.empty() && numbers[0] == layer_.setting("oov_token").integer().value_or(-1)) numbers.erase(numbers.begin());
  }

  /// The mask token is number 0.
  ValueId mask(ValueId x, ValueId ids) {
    if (!has_mask_) return ids;
    ValueId token = kNone;
    if (integers_) {
      token = b_.number(DType::kInt64, static_cast<double>(mask_number_));
      x = b_.cast(x, DType::kInt64);
    } else {
      std::byte* none = nullptr;
      const auto constant = graph::make_mutable_constant(DType::kString, Shape{}, &none);
      constant->strings = {mask_token_};
      token = b_.constant(constant);
    }
    return b_.add(Op::kWhere, {b_.add(Op::kEqual, {x, token}), b_.number(DType::kInt64, 0), ids});
  }

  Layer& layer_;
  graph::Builder& b_;
  const bool integers_;
  bool has_mask_ = false;
  std::string mask_token_;
  int64_t mask_number_ = 0;
};

/// Keras counts in integers. Weighted counts are floats.
void declare_integers(Layer& layer, std::string_view mode) {
  if (mode != "tf_idf") layer.set_declared(DType::kInt64);
}

void import_lookup(Layer& layer) {
  const std::string mode = layer.text("output_mode", "int");
  if (layer.is_set("encoding") && layer.text("encoding") != "utf-8") return layer.unsupported("an encoding that is not UTF-8");
  Lookup lookup(layer);
  const auto vocabulary = lookup.read(mode);
  if (!vocabulary) return;
  if (layer.flag("invert")) return layer.out(lookup.text_of(layer.plain(0), *vocabulary));
  const ValueId ids = lookup.find(layer.plain(0), *vocabulary);
  if (layer.failed()) return;
  if (mode == "int") return layer.out(ids);
  declare_integers(layer, mode);
  layer.out(encoded(layer, ids, lookup.depth(*vocabulary), mode));
}

/// How often each word is among the parts of a text [batch, most parts]; `lengths`: how many parts it has. Unknown words are counted at place 0.
/// Known words are counted by an operator that no filled-up part changes, so that rows stay independent (graph/proofs/batchable_texts.cc).
ValueId counted_words(Layer& layer, ValueId parts, ValueId lengths, const Vocabulary& vocabulary, int64_t depth, const std::string& mode) {
  graph::Builder& b = layer.b();
  const auto known = static_cast<int64_t>(vocabulary.words.size());
  List places(vocabulary.words.size());
  std::iota(places.begin(), places.end(), int64_t{0});
  const ValueId counts = b.add(Op::kTfIdfVectorizer, {parts},
                               {{"mode", std::string("TF")},
                                {"min_gram_length", int64_t{1}},
                                {"max_gram_length", int64_t{1}},
                                {"max_skip_count", int64_t{0}},
                                {"ngram_counts", List{0}},
                                {"ngram_indexes", places},
                                {"pool_strings", vocabulary.words}});
  const ValueId all = b.unsqueeze(b.cast(lengths, DType::kFloat32), {1});
  const ValueId found = b.add(Op::kReduceSum, {counts}, {{"axes", List{1}}, {"keepdims", int64_t{1}}});
  ValueId y = b.add(Op::kConcat, {b.add(Op::kSub, {all, found}), counts}, {{"axis", int64_t{1}}});
  if (depth > known + 1) y = b.add(Op::kPad, {y}, {{"pads", List{0, 0, 0, depth - known - 1}}});
  if (mode == "multi_hot") return b.add(Op::kMin, {y, b.number(DType::kFloat32, 1)});
  return mode == "count" ? y : weighted(layer, y, depth);
}

/// Texts to words to numbers.
void import_text_vectorization(Layer& layer) {
  graph::Builder& b = layer.b();
  const std::string mode = layer.text("output_mode", "int");
  const auto name_of = [&](std::string_view key, std::string_view fallback) {
    if (layer.setting(key) && !layer.setting(key).is_null() && !layer.setting(key).is_text())
      layer.unsupported(fmt::format("'{}' is a function of its own", key));
    return layer.is_set(key) ? layer.text(key) : std::string(fallback);
  };
  const std::string standardize = name_of("standardize", ""), split = name_of("split", "");
  if (layer.is_set("ngrams")) return layer.unsupported("ngrams");
  if (split != "whitespace") return layer.unsupported(split.empty() ? "texts that are not split" : fmt::format("split '{}'", split));
  Lookup lookup(layer);
  const auto vocabulary = lookup.read(mode);
  if (!vocabulary) return;
  ValueId x = layer.plain(0);
  if (b.dtype(x) != DType::kString) return layer.unsupported("its input is no text");
  if (b.rank(x) == 2 && b.size(x, 1) == 1) x = b.squeeze(x, {1});
  if (b.rank(x) != 1) return layer.unsupported("an input that is not one text a row");
  const bool lower = standardize == "lower_and_strip_punctuation" || standardize == "lower";
  const bool strip = standardize == "lower_and_strip_punctuation" || standardize == "strip_punctuation";
  if (!standardize.empty() && !lower && !strip) return layer.unsupported(fmt::format("standardize '{}'", standardize));
  if (lower) x = b.add(Op::kChangeCase, {x}, {{"to", std::string("LOWER")}});
  if (strip)
    x = b.add(Op::kRegexReplace, {x},
              {{"pattern", std::string(R"([!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\'])")}, {"rewrite", std::string()}, {"all", int64_t{1}}});
  const bool cut = mode == "int" && layer.is_set("output_sequence_length");
  const int64_t width = layer.integer("output_sequence_length", 0);
  if (cut && (width < 1 || width > kMostTokens)) return layer.corrupt("an output_sequence_length that is none");
  graph::Attributes attributes;
  if (cut) attributes.emplace("width", width);
  const auto parts = b.add_with_results(Op::kStringSplit, 2, {x}, std::move(attributes));
  if (mode != "int") declare_integers(layer, mode);
  const int64_t depth = lookup.depth(*vocabulary);
  const bool counts = mode == "multi_hot" || mode == "count" || mode == "tf_idf";
  const auto& words = vocabulary->words;
  if (counts && !words.empty() && depth > static_cast<int64_t>(words.size()) && depth <= kMostTokens &&
      std::ranges::find(words, "") == words.end())
    return layer.out(counted_words(layer, parts[0], parts[1], *vocabulary, depth, mode));
  const ValueId ids = lookup.find(parts[0], *vocabulary), zero = b.number(DType::kInt64, 0);
  ValueId places = kNone;
  if (cut) {
    List numbers(static_cast<size_t>(width));
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    places = b.integers(numbers);
  } else {
    const ValueId most = b.squeeze(b.slice(b.add(Op::kShape, {parts[0]}), 0, 1, 2), {0});
    places = b.add(Op::kRange, {zero, most, b.number(DType::kInt64, 1)});
  }
  const ValueId inside = b.add(Op::kLess, {places, b.unsqueeze(parts[1], {1})});
  if (layer.failed()) return;
  if (mode == "int") return layer.out(b.add(Op::kWhere, {inside, ids, zero}));
  const ValueId counted = b.add(Op::kWhere, {inside, ids, b.number(DType::kInt64, -1)});
  layer.out(encoded(layer, counted, depth, mode));
}

void import_category_encoding(Layer& layer) {
  if (layer.inputs() > 1) return layer.unsupported("weights of counts");
  layer.out(encoded(layer, layer.plain(0), layer.integer("num_tokens", 0), layer.text("output_mode", "multi_hot")));
}

/// The number of boundaries that are not above x.
void import_discretization(Layer& layer) {
  const Json boundaries = layer.setting("bin_boundaries");
  if (!boundaries.is_array()) return layer.unsupported("bins that it learned: give bin_boundaries");
  tf::Attr list;
  for (const Json& each : boundaries.items()) list.list.push_back(attr(each.number().value_or(0)));
  const ValuePtr bins = layer.op("Bucketize", {layer.as_float(layer.value(0))}, {{"boundaries", std::move(list)}});
  const std::string mode = layer.text("output_mode", "int");
  if (mode == "int") return layer.out(bins);
  layer.out(encoded(layer, layer.scope().plain(*bins), static_cast<int64_t>(boundaries.size()) + 1, mode));
}

constexpr LayerRow kLookups[] = {
    {"CategoryEncoding", import_category_encoding},
    {"Discretization", import_discretization},
    {"IntegerLookup", import_lookup},
    {"StringLookup", import_lookup},
    {"TextVectorization", import_text_vectorization},
};

}  // namespace

std::span<const LayerRow> lookup_layers() { return kLookups; }

}  // namespace serin::formats::keras
