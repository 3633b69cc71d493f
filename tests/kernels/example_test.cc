// ParseExample: features of serialized tf.Example messages, and what becomes of messages that are damaged.

#include <limits>

#include "tests/kernels/sized_run.h"

namespace serin::kernels::ref {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Strings = std::vector<std::string>;
using Integers = std::vector<int64_t>;

// ---- the wire format

std::string varint(uint64_t value) {
  std::string out;
  for (; value > 127; value >>= 7) out += static_cast<char>((value & 127) | 128);
  return out + static_cast<char>(value);
}
std::string field(uint64_t number, const std::string& body) { return varint(number << 3 | 2) + varint(body.size()) + body; }
std::string raw(float value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

std::string floats(const std::vector<float>& values) {
  std::string packed;
  for (const float value : values) packed += raw(value);
  return field(2, field(1, packed));
}
std::string integers(const Integers& values) {
  std::string packed;
  for (const int64_t value : values) packed += varint(static_cast<uint64_t>(value));
  return field(3, field(1, packed));
}
std::string bytes(const Strings& values) {
  std::string list;
  for (const std::string& value : values) list += field(1, value);
  return field(1, list);
}
std::string entry(const std::string& key, const std::string& feature) { return field(1, field(1, key) + field(2, feature)); }
std::string example(const std::string& entries) { return field(1, entries); }

// ---- a model that asks for: age f32[], vector f32[2] with a default, name str[1]; tags as sparse texts, ids as ragged integers

struct Answer {
  std::string problem;
  std::vector<Held> outputs;
  std::vector<float> age() const { return outputs[0].as<float>(); }
  std::vector<float> vector() const { return outputs[1].as<float>(); }
  Strings names() const { return outputs[2].strings; }
  Integers indices() const { return outputs[3].as<int64_t>(); }
  Strings tags() const { return outputs[4].strings; }
  Integers shape() const { return outputs[5].as<int64_t>(); }
  Integers ids() const { return outputs[6].as<int64_t>(); }
  Integers splits() const { return outputs[7].as<int64_t>(); }
};

Answer parse(const Strings& messages) {
  const auto n = static_cast<int64_t>(messages.size());
  const Attributes attributes = with_attributes({{"keys", Strings{"age", "vector", "name", "tags", "ids"}},
                                                 {"types", Strings{"f32", "f32", "str", "str", "i64"}},
                                                 {"ranks", Integers{0, 1, 1}},
                                                 {"dims", Integers{2, 1}},
                                                 {"sparse", int64_t{1}},
                                                 {"ragged", int64_t{1}}});
  SizedRun run("ParseExample", attributes,
               {texts({n}, messages), tensor<float>({0}, {}), tensor<float>({2}, {0.5F, -0.5F}), texts({1}, {"nobody"})},
               {{DType::kFloat32, {n}},
                {DType::kFloat32, {n, 2}},
                {DType::kString, {n, 1}},
                {DType::kInt64, {0, 2}, false},
                {DType::kString, {0}, false},
                {DType::kInt64, {2}},
                {DType::kInt64, {0}, false},
                {DType::kInt64, {n + 1}}});
  return {run.problem, std::move(run.outputs)};
}

const std::string kAge = entry("age", floats({7}));
const std::string kWhole = example(kAge + entry("tags", bytes({"a", ""})) + entry("ids", integers({-1, 300})) +
                                   entry("name", bytes({"Li"})) + entry("vector", floats({1, 2})));

TEST(ParseExample, ReadsEachKindOfFeature) {
  const Answer answer = parse({kWhole, example(entry("unknown", floats({1})) + entry("age", floats({8}))), kWhole});
  ASSERT_THAT(answer.problem, IsEmpty());
  EXPECT_THAT(answer.age(), ElementsAre(7, 8, 7));
  EXPECT_THAT(answer.vector(), ElementsAre(1, 2, 0.5F, -0.5F, 1, 2));
  EXPECT_THAT(answer.names(), ElementsAre("Li", "nobody", "Li"));
  EXPECT_THAT(answer.indices(), ElementsAre(0, 0, 0, 1, 2, 0, 2, 1));
  EXPECT_THAT(answer.tags(), ElementsAre("a", "", "a", ""));
  EXPECT_THAT(answer.shape(), ElementsAre(3, 2));
  EXPECT_THAT(answer.ids(), ElementsAre(-1, 300, -1, 300));
  EXPECT_THAT(answer.splits(), ElementsAre(0, 2, 2, 4));
}

TEST(ParseExample, TakesNoMessagesAndNoValues) {
  const Answer none = parse({});
  ASSERT_THAT(none.problem, IsEmpty());
  EXPECT_THAT(none.shape(), ElementsAre(0, 0));
  EXPECT_THAT(none.splits(), ElementsAre(0));
  const Answer one = parse({example(kAge)});
  ASSERT_THAT(one.problem, IsEmpty());
  EXPECT_THAT(one.indices(), IsEmpty());
  EXPECT_THAT(one.shape(), ElementsAre(1, 0));
  EXPECT_THAT(one.splits(), ElementsAre(0, 0));
}

TEST(ParseExample, ReadsNumbersThatAreNotPackedAndParts) {
  std::string list;
  for (const uint64_t value : {1, 2}) list += varint(1 << 3) + varint(value);
  const std::string ids = field(3, list + field(1, varint(3)));
  const std::string vector = field(2, varint(1 << 3 | 5) + raw(1) + field(1, raw(2)));
  const std::string extra = varint(9 << 3) + varint(5) + varint(10 << 3 | 1) + std::string(8, 'x') + varint(11 << 3 | 5) + "four";
  const Answer answer = parse({extra + example(entry("ids", ids)) + example(entry("vector", vector + extra) + kAge)});
  ASSERT_THAT(answer.problem, IsEmpty());
  EXPECT_THAT(answer.ids(), ElementsAre(1, 2, 3));
  EXPECT_THAT(answer.vector(), ElementsAre(1, 2));
}

TEST(ParseExample, TheLastOfTwoFeaturesOfOneNameCounts) {
  const Answer answer = parse({example(kAge + entry("ids", integers({5})) + entry("age", floats({9})) + entry("ids", integers({6, 7})))});
  ASSERT_THAT(answer.problem, IsEmpty());
  EXPECT_THAT(answer.age(), ElementsAre(9));
  EXPECT_THAT(answer.ids(), ElementsAre(6, 7));
}

TEST(ParseExample, AFeatureWithoutAListIsMissing) {
  EXPECT_THAT(parse({example(entry("age", ""))}).problem, "element 0 has no feature 'age', which is required");
  EXPECT_THAT(parse({example(kAge + entry("vector", "") + entry("tags", ""))}).problem, IsEmpty());
}

TEST(ParseExample, NamesTheElementAndTheFeature) {
  const auto problem = [](const std::string& entries) { return parse({kWhole, example(entries)}).problem; };
  EXPECT_EQ(problem(""), "element 1 has no feature 'age', which is required");
  EXPECT_EQ(problem(entry("age", floats({1, 2}))), "element 1 has feature 'age' with 2 values, the model takes 1");
  EXPECT_EQ(problem(entry("age", floats({}))), "element 1 has feature 'age' with 0 values, the model takes 1");
  EXPECT_EQ(problem(entry("age", integers({1}))), "element 1 has feature 'age' with integers, the model takes floats");
  EXPECT_EQ(problem(kAge + entry("vector", floats({1, 2, 3}))), "element 1 has feature 'vector' with 3 values, the model takes 2");
  EXPECT_EQ(problem(kAge + entry("name", floats({1}))), "element 1 has feature 'name' with floats, the model takes bytes");
  EXPECT_EQ(problem(kAge + entry("tags", integers({1}))), "element 1 has feature 'tags' with integers, the model takes bytes");
  EXPECT_EQ(problem(kAge + entry("ids", bytes({"x"}))), "element 1 has feature 'ids' with bytes, the model takes integers");
  EXPECT_EQ(problem(entry("age", field(2, field(1, "123")))), "element 1 has feature 'age' with a damaged list");
  EXPECT_EQ(problem(entry("age", field(2, varint(1 << 3) + varint(1)))), "element 1 has feature 'age' with a damaged list");
  EXPECT_EQ(problem(kAge + entry("ids", field(3, field(1, "\xff")))), "element 1 has feature 'ids' with a damaged list");
  EXPECT_EQ(problem(kAge + entry("ids", field(3, varint(1 << 3 | 5) + "four"))), "element 1 has feature 'ids' with a damaged list");
  EXPECT_EQ(problem(kAge + entry("tags", field(1, varint(1 << 3) + varint(1)))), "element 1 has feature 'tags' with a damaged list");
}

/// Each part of a message: nothing is read beyond its end, and only whole messages of fewer features are taken.
TEST(ParseExample, P25RefusesEveryTruncation) {
  for (size_t size = 1; size < kWhole.size(); ++size)
    EXPECT_EQ(parse({kWhole, kWhole.substr(0, size)}).problem, "element 1 is no tf.Example, or a damaged one") << size;
}

/// Any byte may be any other one: the kernel answers or refuses (the sanitizers see the rest).
TEST(ParseExample, P25TakesEveryDamagedByte) {
  size_t refused = 0;
  for (size_t at = 0; at < kWhole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string damaged = kWhole;
      damaged[at] = static_cast<char>(value);
      refused += parse({damaged, kWhole}).problem.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, kWhole.size() * 50);
}

TEST(ParseExample, P25RefusesWhatIsNoMessage) {
  const std::string no_example = "element 0 is no tf.Example, or a damaged one";
  EXPECT_EQ(parse({"\xff"}).problem, no_example);
  EXPECT_EQ(parse({std::string(1, '\0')}).problem, no_example);
  EXPECT_EQ(parse({varint(1 << 3) + varint(1)}).problem, no_example) << "the features are a number";
  EXPECT_EQ(parse({field(1, varint(1 << 3) + varint(1))}).problem, no_example) << "an entry is a number";
  EXPECT_EQ(parse({example(field(1, varint(1 << 3) + varint(1)))}).problem, no_example) << "a name is a number";
  EXPECT_EQ(parse({example(entry("age", varint(2 << 3) + varint(1)))}).problem, no_example) << "a list is a number";
  EXPECT_EQ(parse({varint(9 << 3 | 3)}).problem, no_example) << "a group";
  EXPECT_EQ(parse({varint(1 << 3 | 2) + varint(std::numeric_limits<uint64_t>::max())}).problem, no_example) << "a length beyond everything";
  EXPECT_EQ(parse({varint(9 << 3) + std::string(10, '\xff')}).problem, no_example) << "a number without an end";
}

TEST(ParseExample, ReadsOneMessageWithoutABatch) {
  const Attributes attributes = with_attributes({{"keys", Strings{"vector", "tags"}},
                                                 {"types", Strings{"f32", "str"}},
                                                 {"ranks", Integers{1}},
                                                 {"dims", Integers{2}},
                                                 {"sparse", int64_t{1}}});
  const SizedRun run("ParseExample", attributes, {texts({}, {kWhole}), tensor<float>({0}, {})},
                     {{DType::kFloat32, {2}}, {DType::kInt64, {0, 1}, false}, {DType::kString, {0}, false}, {DType::kInt64, {1}}});
  ASSERT_THAT(run.problem, IsEmpty());
  EXPECT_THAT(run.outputs[0].as<float>(), ElementsAre(1, 2));
  EXPECT_THAT(run.outputs[1].as<int64_t>(), ElementsAre(0, 1));
  EXPECT_THAT(run.outputs[3].as<int64_t>(), ElementsAre(2));
}

TEST(ParseExample, RefusesDescriptionsThatContradictThemselves) {
  const auto why = [](const Strings& keys, const Strings& types, int64_t sparse, DType output) {
    return SizedRun("ParseExample", with_attributes({{"keys", keys}, {"types", types}, {"sparse", sparse}}), {texts({1}, {""})},
                    {{output, {1}}})
        .problem;
  };
  EXPECT_THAT(why({"a"}, {"f64"}, 0, DType::kFloat64), HasSubstr("'f64'"));
  EXPECT_THAT(why({"a"}, {}, 0, DType::kFloat32), HasSubstr("each key needs a type"));
  EXPECT_THAT(why({"a"}, {"f32"}, 2, DType::kFloat32), HasSubstr("more listed features than keys"));
  EXPECT_THAT(why({"a"}, {"f32"}, 1, DType::kFloat32), HasSubstr("1 outputs"));
  EXPECT_THAT(why({"a"}, {"f32"}, 0, DType::kInt64), HasSubstr("another type"));
}

}  // namespace
}  // namespace serin::kernels::ref
