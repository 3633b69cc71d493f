// ModelInferResponse of gRPC, as servers write it and as nobody should.

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/protocol/answers/answers.h"
#include "tests/runtime/base/protobuf_encoder.h"

namespace serin::protocol {
namespace {

using test::Encoder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kRaw = 6;
const float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
std::string bytes_of(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}

std::string packed(const std::vector<int64_t>& numbers) {
  Encoder out;
  for (const int64_t number : numbers) out.varint(static_cast<uint64_t>(number));
  return out.str();
}

/// `contents`: where the elements stand in the output itself.
Encoder output(std::string_view name, std::string_view datatype, const std::vector<int64_t>& shape, const Encoder* contents = nullptr) {
  Encoder made;
  made.bytes(1, name).bytes(2, datatype).bytes(3, packed(shape));
  if (contents) made.message(5, *contents);
  return made;
}

std::string call(const Encoder& message, bool compressed = false) {
  const std::string& text = message.str();
  std::string framed(1, static_cast<char>(compressed));
  for (int shift = 24; shift >= 0; shift -= 8) framed += static_cast<char>(text.size() >> shift);
  return framed + text;
}

/// Two outputs with their elements behind them, as Triton writes them.
Encoder two_outputs(const std::vector<float>& scores = {0.1F, 0.7F, 0.2F}) {
  Encoder made;
  made.bytes(1, "m").bytes(2, "1").message(5, output("scores", "FP32", {1, 3})).message(5, output("ids", "INT64", {2}));
  made.bytes(kRaw, bytes_of(scores)).bytes(kRaw, bytes_of<int64_t>({-5, 7}));
  return made;
}

class AnswersOfGrpc : public ::testing::Test {
 protected:
  Reading read(const std::string& body, const Wanted& wanted = {}) {
    body_ = body;
    return reader_.read({.bytes = body_, .call = true}, wanted);
  }
  std::vector<double> values(const Encoder& message, const Wanted& wanted = {}) {
    EXPECT_EQ(read(call(message), wanted), Reading::kOutputs);
    const AnswerOutput* output = reader_.wanted();
    return output == nullptr ? std::vector<double>{-12345} : std::vector<double>(output->values.begin(), output->values.end());
  }

  AnswerReader reader_;
  std::string body_;
};

TEST_F(AnswersOfGrpc, ElementsBehindTheOutputs) {
  ASSERT_EQ(read(call(two_outputs())), Reading::kOutputs);
  const auto all = reader_.outputs();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].name, "scores");
  EXPECT_EQ(all[0].datatype, "FP32");
  EXPECT_EQ(all[0].shape, (Shape{1, 3}));
  EXPECT_THAT(values(two_outputs()), ElementsAre(0.1F, 0.7F, 0.2F));
  EXPECT_THAT(values(two_outputs(), {.output = "ids"}), ElementsAre(-5, 7));
  EXPECT_THAT(values(two_outputs(), {.output = "ids", .values = Wanted::Values::kRow, .random = 1}), ElementsAre(-5, 7));
  EXPECT_THAT(values(two_outputs(), {.output = "nowhere"}), ElementsAre(-12345)) << "not there";
  EXPECT_THAT(values(two_outputs(), {.values = Wanted::Values::kNone}), IsEmpty());
}

TEST_F(AnswersOfGrpc, ElementsInTheOutputs) {
  const auto only = [](std::string_view datatype, const std::vector<int64_t>& shape, const Encoder& contents) {
    Encoder made;
    made.message(5, output("y", datatype, shape, &contents));
    return made;
  };
  EXPECT_THAT(values(only("BOOL", {2}, Encoder().bytes(1, packed({1, 0})))), ElementsAre(1, 0));
  EXPECT_THAT(values(only("INT8", {2}, Encoder().bytes(2, packed({-3, 4})))), ElementsAre(-3, 4));
  EXPECT_THAT(values(only("INT64", {2}, Encoder().number(3, -1).number(3, 2))), ElementsAre(-1, 2)) << "not packed";
  EXPECT_THAT(values(only("UINT8", {1}, Encoder().bytes(4, packed({255})))), ElementsAre(255));
  EXPECT_THAT(values(only("UINT64", {1}, Encoder().bytes(5, packed({-1})))), ElementsAre(18446744073709551615.));
  EXPECT_THAT(values(only("FP32", {2, 2}, Encoder().bytes(6, bytes_of<float>({1, 2, 3})).real(6, 4))), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values(only("FP64", {2}, Encoder().bytes(7, bytes_of<double>({0.5, -1e300})))), ElementsAre(0.5, -1e300));
  EXPECT_THAT(values(only("FP32", {0, 4}, Encoder())), IsEmpty());
  const Encoder rows = only("FP32", {2, 2}, Encoder().bytes(6, bytes_of<float>({1, 2, 3, 4})));
  EXPECT_THAT(values(rows, {.values = Wanted::Values::kRow, .random = 3}), ElementsAre(3, 4));

  const Encoder one = only("BYTES", {1}, Encoder().bytes(8, "cat")), other = only("BYTES", {1}, Encoder().bytes(8, "dog"));
  EXPECT_THAT(values(one), IsEmpty());
  const uint64_t cat = reader_.outputs()[0].texts;
  EXPECT_EQ(read(call(one), {.strings = true}), Reading::kOutputs);
  EXPECT_THAT(reader_.wanted()->strings, ElementsAre("cat"));
  EXPECT_THAT(values(other), IsEmpty());
  EXPECT_NE(cat, 0U);
  EXPECT_NE(cat, reader_.outputs()[0].texts);
}

TEST_F(AnswersOfGrpc, AnOutputWithoutElementsNeedsNone) {
  Encoder made;
  made.message(5, output("none", "FP32", {0, 4})).message(5, output("y", "FP32", {1}));
  made.bytes(kRaw, "").bytes(kRaw, bytes_of<float>({3}));
  EXPECT_THAT(values(made, {.output = "y"}), ElementsAre(3));
  Encoder bare;
  bare.message(5, output("none", "FP32", {0, 4}));
  EXPECT_THAT(values(bare), IsEmpty());
}

TEST_F(AnswersOfGrpc, NanAndInfinityAreFailuresInAnyOutput) {
  for (const float bad : {kNaN, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(read(call(two_outputs({0, bad, 0}))), Reading::kFailed);
    EXPECT_EQ(read(call(two_outputs({0, bad, 0})), {.output = "ids", .values = Wanted::Values::kNone}), Reading::kFailed);
    const Encoder contents = Encoder().real(6, bad);
    EXPECT_EQ(read(call(Encoder().message(5, output("y", "FP32", {1}, &contents)))), Reading::kFailed);
  }
  Encoder half;
  half.message(5, output("y", "FP16", {2})).bytes(kRaw, std::string("\x00\x3C\x00\x7C", 4));  // 1 and infinity
  EXPECT_EQ(read(call(half)), Reading::kFailed);
}

TEST_F(AnswersOfGrpc, WhatDoesNotFitIsForeign) {
  const Encoder three = Encoder().bytes(6, bytes_of<float>({1, 2, 3}));
  const auto with = [](const Encoder& first, std::string_view raw) { return call(Encoder().message(5, first).bytes(kRaw, raw)); };
  for (const std::string& body : {
           std::string(),
           std::string("\0\0\0", 3),
           call(two_outputs(), /*compressed=*/true),
           call(two_outputs()) + call(two_outputs()),
           call(two_outputs()).substr(0, 40),
           call(Encoder().raw("\x0B")),
           call(Encoder().raw(std::string(11, '\xFF'))),
           call(Encoder().bytes(5, "\x0A\x7Fx")),
           call(Encoder().message(5, output("y", "FP32", {2}, &three))),                  // two are promised
           call(Encoder().message(5, output("y", "FP32", {3}))),                          // none come
           call(Encoder().message(5, output("", "FP32", {3}, &three))),                   // no name
           call(Encoder().message(5, output("y", "", {3}, &three))),                      // no datatype
           call(Encoder().message(5, output("y", "FP32", {3}, &three)).bytes(kRaw, "")),  // both places
           with(output("y", "FP32", {3}), "12345678"),
           with(output("y", "FP33", {2}), "12345678"),
           with(output("y", "FP32", {-2}), "12345678"),
           with(output("y", "FP32", {int64_t{1} << 62, 8}), "12345678"),
           with(output("y", "FP32", std::vector<int64_t>(100, 1)), "1234"),
           call(Encoder().message(5, output("y", "FP32", {1})).bytes(kRaw, "1234").bytes(kRaw, "1234")),
       })
    EXPECT_EQ(read(body), Reading::kForeign) << testing::PrintToString(body);
}

TEST_F(AnswersOfGrpc, EveryCutAndEveryFlippedBitIsSurvived) {
  const std::string whole = call(two_outputs());
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_EQ(read(whole.substr(0, size)), Reading::kForeign) << size;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    read(damaged);
    const AnswerOutput* output = reader_.wanted();
    EXPECT_LE(output ? output->values.size() : 0, 100U);
  }
}

}  // namespace
}  // namespace serin::protocol
