// Answers of TensorFlow Serving's PredictionService over gRPC, as TensorFlow and Serin write them.

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/protocol/answers/answers.h"
#include "runtime/protocol/tensorflow/tfserving_grpc.h"
#include "tests/runtime/base/protobuf_encoder.h"

namespace serin::protocol {
namespace {

using test::Encoder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kFloat = 1, kDouble = 2, kInt32 = 3, kString = 7, kInt64 = 9, kBool = 10, kBFloat16 = 14, kHalf = 19, kUInt64 = 23,
                  kComplex = 8;
const float kNotANumber = std::numeric_limits<float>::quiet_NaN();

template <class T>
std::string memory_of(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}

Encoder proto(int64_t dtype, const std::vector<int64_t>& dims) {
  Encoder shape;
  for (const int64_t dim : dims) shape.message(2, Encoder().number(1, dim));
  return Encoder().number(1, dtype).message(2, shape);
}

Encoder entry(std::string_view name, const Encoder& tensor) { return Encoder().bytes(1, name).message(2, tensor); }

class TensorFlowAnswers : public ::testing::Test {
 protected:
  Reading read(const Encoder& message, const Wanted& wanted = {}) { return read(message.str(), wanted); }
  Reading read(const std::string& message, const Wanted& wanted = {}) {
    body_.assign(1, '\0');
    for (int shift = 24; shift >= 0; shift -= 8) body_ += static_cast<char>(message.size() >> shift);
    body_ += message;
    return reader_.read({.bytes = body_, .call = true}, wanted);
  }
  std::vector<double> values(const Encoder& message, const Wanted& wanted = {}) {
    EXPECT_EQ(read(message, wanted), Reading::kOutputs);
    const AnswerOutput* output = reader_.wanted();
    return output == nullptr ? std::vector<double>{-12345} : std::vector<double>(output->values.begin(), output->values.end());
  }
  std::vector<double> of(const Encoder& tensor) { return values(Encoder().message(1, entry("y", tensor))); }

  AnswerReader reader_;
  std::string body_;
};

TEST_F(TensorFlowAnswers, OutputsOfPredictAreSortedByTheirNames) {
  const Encoder scores = proto(kFloat, {2, 2}).bytes(5, memory_of<float>({1, 2, 3, 4})),
                ids = proto(kInt64, {2}).number(10, -5).number(10, 7);
  const Encoder spec = Encoder().bytes(1, "m");
  for (const Encoder& message : {Encoder().message(1, entry("scores", scores)).message(1, entry("ids", ids)).message(2, spec),
                                 Encoder().message(2, spec).message(1, entry("ids", ids)).message(1, entry("scores", scores))}) {
    ASSERT_EQ(read(message), Reading::kOutputs);
    const auto all = reader_.outputs();
    ASSERT_THAT(all, SizeIs(2));
    EXPECT_EQ(all[0].name, "ids");
    EXPECT_EQ(all[0].datatype, "INT64");
    EXPECT_EQ(all[1].shape, (Shape{2, 2}));
    EXPECT_THAT(values(message), ElementsAre(-5, 7)) << "the first by its name, in whatever order the map was written";
    EXPECT_THAT(values(message, {.output = "scores"}), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(values(message, {.output = "scores", .values = Wanted::Values::kRow, .random = 1}), ElementsAre(3, 4));
    EXPECT_THAT(values(message, {.output = "nowhere"}), ElementsAre(-12345));
    EXPECT_THAT(values(message, {.values = Wanted::Values::kNone}), IsEmpty());
  }
}

TEST_F(TensorFlowAnswers, NumbersOfEveryType) {
  EXPECT_THAT(of(proto(kFloat, {2}).bytes(4, memory_of<float>({1.5, -2}))), ElementsAre(1.5, -2)) << "tensor_content";
  EXPECT_THAT(of(proto(kDouble, {2}).bytes(6, memory_of<double>({0.5, -1e300}))), ElementsAre(0.5, -1e300));
  EXPECT_THAT(of(proto(kInt32, {2}).number(7, -1).number(7, 2)), ElementsAre(-1, 2));
  EXPECT_THAT(of(proto(kBool, {2}).number(11, 1).number(11, 0)), ElementsAre(1, 0));
  EXPECT_THAT(of(proto(kHalf, {2}).number(13, 0x3C00).number(13, 0xC000)), ElementsAre(1, -2));
  EXPECT_THAT(of(proto(kBFloat16, {2}).number(13, 0x3F80).number(13, 0xC000)), ElementsAre(1, -2));
  EXPECT_THAT(of(proto(kUInt64, {1}).number(17, -1)), ElementsAre(18446744073709551615.));
  EXPECT_THAT(of(proto(kFloat, {2, 2}).real(5, 7)), ElementsAre(7, 7, 7, 7)) << "the last one fills the rest";
  EXPECT_THAT(of(proto(kFloat, {3})), ElementsAre(0, 0, 0));
  EXPECT_THAT(of(proto(kFloat, {}).real(5, 7)), ElementsAre(7));
  EXPECT_THAT(of(proto(kFloat, {0, 4})), IsEmpty());
}

TEST_F(TensorFlowAnswers, TextsOfPredict) {
  const auto texts = [](std::string_view first) {
    return Encoder().message(1, entry("y", proto(kString, {2}).bytes(8, first).bytes(8, "dog")));
  };
  EXPECT_THAT(values(texts("cat")), IsEmpty());
  const uint64_t before = reader_.outputs()[0].texts;
  EXPECT_THAT(values(texts("cow")), IsEmpty());
  EXPECT_NE(reader_.outputs()[0].texts, before);
  EXPECT_EQ(read(texts("cat"), {.strings = true}), Reading::kOutputs);
  EXPECT_THAT(reader_.wanted()->strings, ElementsAre("cat", "dog"));
}

TEST_F(TensorFlowAnswers, ThoseThatSerinWrites) {
  const std::vector<float> scores{0.1F, 0.9F};
  const std::vector<std::string> labels{"cat"};
  const std::vector<NamedTensor> outputs{{.name = "scores", .tensor = {DType::kFloat32, {1, 2}, const_cast<float*>(scores.data())}},
                                         {.name = "label", .tensor = {DType::kString, {1}, const_cast<std::string*>(labels.data())}}};
  std::string message;
  append_tf_response(message, "m", 1, "", outputs);
  EXPECT_EQ(read(message, {.output = "scores"}), Reading::kOutputs);
  EXPECT_THAT(reader_.wanted()->values, ElementsAre(0.1F, 0.9F));
  EXPECT_EQ(read(message, {.strings = true}), Reading::kOutputs);
  EXPECT_THAT(reader_.wanted()->strings, ElementsAre("cat"));
}

TEST_F(TensorFlowAnswers, ClassesAndRegressions) {
  const auto scored = [](std::string_view label, float score) { return Encoder().bytes(1, label).real(2, score); };
  const Encoder example = Encoder().message(1, scored("cat", 0.25)).message(1, scored("dog", 0.75));
  const Encoder classes = Encoder().message(1, Encoder().message(1, example).message(1, example)).message(2, Encoder().bytes(1, "m"));
  EXPECT_THAT(values(classes), ElementsAre(0.25, 0.75, 0.25, 0.75));
  EXPECT_EQ(reader_.outputs()[0].shape, (Shape{2, 2}));
  EXPECT_NE(reader_.outputs()[0].texts, 0U);
  EXPECT_EQ(read(classes, {.strings = true}), Reading::kOutputs);
  EXPECT_THAT(reader_.wanted()->strings, ElementsAre("cat", "dog", "cat", "dog"));
  const Encoder numbers = Encoder().message(1, Encoder().message(1, Encoder().real(1, 2.5)).message(1, Encoder()));
  EXPECT_THAT(values(numbers), ElementsAre(2.5, 0)) << "a zero is not written";
  EXPECT_EQ(reader_.outputs()[0].shape, (Shape{2}));
}

TEST_F(TensorFlowAnswers, WhatIsNotFiniteHasFailed) {
  EXPECT_EQ(read(Encoder().message(1, entry("y", proto(kFloat, {2}).real(5, 1).real(5, kNotANumber)))), Reading::kFailed);
  EXPECT_EQ(read(Encoder().message(1, entry("y", proto(kFloat, {1}).bytes(4, memory_of<float>({kNotANumber}))))), Reading::kFailed);
  EXPECT_EQ(read(Encoder().message(1, Encoder().message(1, Encoder().real(1, kNotANumber)))), Reading::kFailed);
}

TEST_F(TensorFlowAnswers, OthersAreForeign) {
  const auto foreign = [&](const Encoder& tensor) { return read(Encoder().message(1, entry("y", tensor))) == Reading::kForeign; };
  EXPECT_TRUE(foreign(proto(kComplex, {1}))) << "a type that no number is";
  EXPECT_TRUE(foreign(proto(kFloat, {1}).real(5, 1).real(5, 2))) << "more than its shape";
  EXPECT_TRUE(foreign(proto(kFloat, {2}).bytes(4, memory_of<float>({1}))));
  EXPECT_TRUE(foreign(proto(kFloat, {-1}).real(5, 1)));
  EXPECT_TRUE(foreign(proto(kFloat, {int64_t{1} << 40}).real(5, 1))) << "too much to fill";
  EXPECT_TRUE(foreign(proto(kString, {2}).bytes(8, "one")));
  const Encoder one = Encoder().message(1, Encoder().bytes(1, "a").real(2, 1)),
                two = Encoder().message(1, Encoder()).message(1, Encoder().bytes(1, "a"));
  EXPECT_EQ(read(Encoder().message(1, Encoder().message(1, one).message(1, two))), Reading::kForeign) << "rows of several lengths";
  const std::string whole = Encoder().message(1, entry("y", proto(kFloat, {2}).real(5, 1).real(5, 2))).str();
  for (size_t size = 1; size < whole.size(); ++size) EXPECT_EQ(read(whole.substr(0, size)), Reading::kForeign) << size;
}

}  // namespace
}  // namespace serin::protocol
