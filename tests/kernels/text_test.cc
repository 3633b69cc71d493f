// The kernels of strings where the ONNX suite does not look: bytes that are no text, limits, attributes that make no sense.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Strings = std::vector<std::string>;

/// One operator of strings, run by its reference kernel on outputs that are as large as asked for.
class TextOp {
 public:
  TextOp(std::string name, Attributes attributes) : op_{std::move(name), std::move(attributes)} {}

  /// The first output, cut to the shape that the kernel set. On a refusal or a fault: why, as the one element.
  Strings run(Strings x, const Shape& shape, size_t room, size_t second = 0) {
    Strings y(room);
    std::vector<int64_t> counts(second);
    const TensorView in{DType::kString, shape, x.data()};
    std::vector<TensorView> out = {{DType::kString, Shape{static_cast<int64_t>(room)}, y.data()}};
    if (shape.rank() == 2) out[0].shape = Shape{1, static_cast<int64_t>(room)};
    if (second > 0) out.push_back({DType::kInt64, shape, counts.data()});
    OpDesc desc{op_, {{in.dtype, in.shape}}, {}};
    for (const TensorView& each : out) desc.outputs.push_back({each.dtype, each.shape});
    PackedWeights weights;
    PrepareContext context{&weights, 1};
    std::string why;
    const auto kernel = generic(desc, context, why);
    if (!kernel) return {why};
    Stream stream;
    if (const Fault fault = kernel->run(stream, std::span(&in, 1), out)) return {*fault};
    shape_ = out[0].shape;
    counts_ = counts;
    y.resize(static_cast<size_t>(shape_.elements()));
    return y;
  }
  const Shape& shape() const { return shape_; }
  const std::vector<int64_t>& counts() const { return counts_; }

 private:
  Generic op_;
  std::vector<int64_t> counts_;
  Shape shape_;
};

Attributes with(std::initializer_list<std::pair<std::string, Attribute>> values) {
  Attributes attributes;
  for (const auto& [key, value] : values) attributes.set(key, value);
  return attributes;
}

// What ONNX Runtime 1.31 answers to the same.
TEST(Tokenizer, CutsAtSeparatorsOneAfterTheOther) {
  TextOp words("Tokenizer", with({{"separators", Strings{" ", ","}}, {"pad_value", "#"}, {"mincharnum", int64_t{1}}}));
  EXPECT_THAT(words.run({"a b,c", "d"}, {2}, 10), ElementsAre("a", "b", "c", "d", "#", "#"));
  EXPECT_EQ(words.shape(), (Shape{2, 3}));
  TextOp longer("Tokenizer", with({{"separators", Strings{" "}}, {"pad_value", "#"}, {"mincharnum", int64_t{2}}}));
  EXPECT_THAT(longer.run({"a bc \u00e9 \u00e9\u00e9"}, {1}, 10), ElementsAre("bc", "\u00e9\u00e9"));
}

TEST(Tokenizer, TakesTheLongestMatchesOfAnExpression) {
  TextOp words("Tokenizer", with({{"tokenexp", "[a-z]+|[a-z]+-[a-z]+"}, {"pad_value", ""}, {"mark", int64_t{1}}}));
  EXPECT_THAT(words.run({"to-day is, 7"}, {1}, 10), ElementsAre("\x02", "to-day", "is", "\x03"));
  TextOp empty("Tokenizer", with({{"tokenexp", "x*"}, {"pad_value", ""}}));
  EXPECT_THAT(empty.run({"axxb"}, {1}, 10), ElementsAre("xx"));
}

TEST(Tokenizer, GivesCharacters) {
  for (const auto& way : {std::pair<std::string, Attribute>{"tokenexp", "."}, {"separators", Strings{""}}}) {
    TextOp characters("Tokenizer", with({way, {"pad_value", "_"}}));
    EXPECT_THAT(characters.run({"\u00e9a", "\xff"}, {1, 2}, 10), ElementsAre("\u00e9", "a", "\xff", "_"));
    EXPECT_EQ(characters.shape(), (Shape{1, 2, 2}));
  }
}

TEST(Tokenizer, RefusesWhatItCannotDo) {
  EXPECT_THAT(TextOp("Tokenizer", {}).run({"a"}, {1}, 3), ElementsAre(HasSubstr("separators or tokenexp")));
  EXPECT_THAT(TextOp("Tokenizer", with({{"tokenexp", "("}})).run({"a"}, {1}, 3), ElementsAre(HasSubstr("is not a regular expression")));
  EXPECT_THAT(TextOp("Tokenizer", with({{"tokenexp", "a"}, {"mincharnum", int64_t{0}}})).run({"a"}, {1}, 3),
              ElementsAre(HasSubstr("mincharnum is 0")));
  EXPECT_THAT(TextOp("Tokenizer", with({{"tokenexp", "."}})).run({"abc"}, {1}, 2), ElementsAre(HasSubstr("too small")));
}

TEST(StringNormalizer, ChangesCaseBeyondAscii) {
  TextOp upper("StringNormalizer", with({{"case_change_action", "UPPER"}}));
  EXPECT_THAT(upper.run({"stra\u00dfe \u00e9t\u00e9", "\u03c9"}, {2}, 2), ElementsAre("STRA\u00dfE \u00c9T\u00c9", "\u03a9"));
  TextOp lower("StringNormalizer", with({{"case_change_action", "LOWER"}}));
  EXPECT_THAT(lower.run({"\u0416 \xf0\x9d\x84\x9e X"}, {1}, 1), ElementsAre("\u0436 \xf0\x9d\x84\x9e x"));
}

TEST(StringNormalizer, KeepsBytesThatAreNoText) {
  TextOp lower("StringNormalizer", with({{"case_change_action", "LOWER"}}));
  EXPECT_THAT(lower.run({"A\xff\xc3", "\xe2\x82", "\xf5\x80\x80\x80Z"}, {3}, 3), ElementsAre("a\xff\xc3", "\xe2\x82", "\xf5\x80\x80\x80z"));
}

/// Overlong forms (of NUL, of "/", of U+FFFF) and surrogates are no characters (RFC 3629). ONNX Runtime refuses them; here their bytes stay.
TEST(StringNormalizer, KeepsOverlongFormsAndSurrogates) {
  TextOp lower("StringNormalizer", with({{"case_change_action", "LOWER"}}));
  const std::vector<std::string> bad = {"\xc0\x80", "\xe0\x80\xaf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80"};
  std::vector<std::string> given, kept;
  for (const std::string& bytes : bad) given.push_back("A" + bytes + "Z"), kept.push_back("a" + bytes + "z");
  EXPECT_THAT(lower.run(given, {6}, 6), testing::ElementsAreArray(kept));
}

TEST(Tokenizer, CountsEachByteOfOverlongFormsAndSurrogates) {
  TextOp characters("Tokenizer", with({{"separators", Strings{""}}, {"pad_value", "_"}}));
  EXPECT_THAT(characters.run({"\xe0\x80\xaf", "\xed\xa0\x80"}, {1, 2}, 10), ElementsAre("\xe0", "\x80", "\xaf", "\xed", "\xa0", "\x80"));
}

TEST(StringNormalizer, LeavesOneEmptyStringOfNothing) {
  TextOp op("StringNormalizer", with({{"stopwords", Strings{"The"}}}));
  EXPECT_THAT(op.run({"the", "THE"}, {1, 2}, 2), ElementsAre(""));
  EXPECT_EQ(op.shape(), Shape({1, 1}));
  EXPECT_THAT(op.run({}, {0}, 1), ElementsAre(""));
  TextOp all("StringNormalizer", with({{"case_change_action", "UPPER"}}));
  EXPECT_THAT(all.run({}, {0}, 0), ElementsAre()) << "nothing was dropped";
}

TEST(StringNormalizer, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(TextOp("StringNormalizer", with({{"case_change_action", "TITLE"}})).run({"a"}, {1}, 1)[0], HasSubstr("'TITLE'"));
  EXPECT_THAT(TextOp("StringNormalizer", {}).run({"a", "b"}, {2, 1}, 2)[0], HasSubstr("[2,1]"));
}

TEST(StringSplit, CountsAndFillsUp) {
  TextOp op("StringSplit", with({{"delimiter", ", "}}));
  EXPECT_THAT(op.run({"a, b", "", ", "}, {3}, 9, 3), ElementsAre("a", "b", "", "", "", ""));
  EXPECT_EQ(op.shape(), Shape({3, 2}));
}

TEST(StringSplit, AtSpacesTakesTheRestAsOnePart) {
  TextOp op("StringSplit", with({{"maxsplit", int64_t{1}}}));
  EXPECT_THAT(op.run({" \ta  b c\n"}, {1}, 4, 1), ElementsAre("a", "b c"));
  TextOp none("StringSplit", with({{"maxsplit", int64_t{0}}}));
  EXPECT_THAT(none.run({"a b"}, {1}, 4, 1), ElementsAre("a b"));
}

TEST(StringSplit, CutsAndFillsUpToAWidth) {
  TextOp op("StringSplit", with({{"width", int64_t{2}}}));
  EXPECT_THAT(op.run({"a b c", "d", ""}, {3}, 6, 3), ElementsAre("a", "b", "d", "", "", ""));
  EXPECT_EQ(op.shape(), Shape({3, 2}));
  EXPECT_THAT(op.counts(), ElementsAre(3, 1, 0)) << "also of what was cut off";
  TextOp none("StringSplit", with({{"width", int64_t{0}}}));
  EXPECT_THAT(none.run({"a b"}, {1}, 0, 1), ElementsAre());
  EXPECT_EQ(none.shape(), Shape({1, 0}));
}

TEST(StringSplit, SaysWhereTheOutputIsTooSmall) {
  EXPECT_THAT(TextOp("StringSplit", {}).run({"a b c"}, {1}, 2, 1)[0], HasSubstr("too small for 3 parts"));
}

TEST(RegexFullMatch, RefusesAPatternThatIsNone) {
  const OpDesc desc{Generic{"RegexFullMatch", with({{"pattern", "(a"}})}, {{DType::kString, {1}}}, {{DType::kBool, {1}}}};
  PackedWeights weights;
  PrepareContext context{&weights, 1};
  std::string why;
  EXPECT_EQ(generic(desc, context, why), nullptr);
  EXPECT_THAT(why, HasSubstr("'(a' is not a regular expression"));
}

TEST(ChangeCase, ChangesLettersOfAsciiOnly) {
  const Attributes upper = with({{"to", std::string("UPPER")}});
  EXPECT_THAT(TextOp("ChangeCase", {})
                  .run({"Az09 @[`{",
                        "\xc3\x84"
                        "B"},
                       Shape{2}, 2),
              ElementsAre("az09 @[`{",
                          "\xc3\x84"
                          "b"));
  EXPECT_THAT(TextOp("ChangeCase", upper).run({"Az@[`{"}, Shape{1}, 1), ElementsAre("AZ@[`{"));
  EXPECT_THAT(TextOp("ChangeCase", with({{"to", std::string("TITLE")}})).run({"a"}, Shape{1}, 1), ElementsAre(HasSubstr("TITLE")));
}

TEST(RegexReplace, ReplacesEachMatchOrTheFirst) {
  const Attributes marks = with({{"pattern", std::string("[!.]")}, {"rewrite", std::string("")}});
  EXPECT_THAT(TextOp("RegexReplace", marks).run({"a.b!c", "", "..."}, Shape{3}, 3), ElementsAre("abc", "", ""));
  const Attributes first = with({{"pattern", std::string("(.)-(.)")}, {"rewrite", std::string("\\2\\1")}, {"all", int64_t{0}}});
  EXPECT_THAT(TextOp("RegexReplace", first).run({"a-b c-d"}, Shape{1}, 1), ElementsAre("ba c-d"));
  EXPECT_THAT(TextOp("RegexReplace", with({{"pattern", std::string("(")}})).run({"a"}, Shape{1}, 1),
              ElementsAre(HasSubstr("not a regular expression")));
  EXPECT_THAT(TextOp("RegexReplace", with({{"pattern", std::string("a")}, {"rewrite", std::string("\\3")}})).run({"a"}, Shape{1}, 1),
              ElementsAre(HasSubstr("rewrite")));
}

}  // namespace
}  // namespace serin::kernels::ref
