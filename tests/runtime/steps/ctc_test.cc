// Texts are those of PaddleOCR's rule in NumPy (make_detections.py); dictionaries that do not fit are refused. And how answers are written as JSON.
#include "runtime/steps/vision/ctc.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <limits>

#include "runtime/steps/vision/answer_json.h"
#include "runtime/steps/vision/geometry.h"
#include "tests/runtime/steps/vision_cases.h"

namespace serin::steps {
namespace {

const std::string kCharacters = "a\nb\r\n中\né\n\nﬁ\n😀";

TEST(Ctc, IsReadAsPaddleOcrReadsIt) {
  std::ifstream lines(test_data("vision/readings.txt"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string kind, text;
    int64_t steps = 0, classes = 0;
    bool space = false;
    words >> kind >> steps >> classes >> space;
    ASSERT_EQ(kind, "ctc");
    const auto values = numbers_of(lines, "values");
    float score = 0;
    lines >> kind >> score;
    std::getline(lines, text);
    const auto dictionary = Dictionary::parse(kCharacters, space, "d");
    ASSERT_TRUE(dictionary) << dictionary.error().message;
    EXPECT_EQ(dictionary->classes(), classes);
    const auto reading = read_ctc(values, steps, classes, *dictionary);
    ASSERT_TRUE(reading) << reading.error().message;
    EXPECT_EQ(reading->text, boost::json::parse(text).as_string());
    EXPECT_NEAR(reading->score, score, 1e-6);
  }
  EXPECT_EQ(count, 5);
}

TEST(Ctc, WithoutACharacterIsEmptyAndHasNoScore) {
  const Dictionary dictionary = Dictionary::of({"a"}, false, "d");
  EXPECT_EQ(*read_ctc(std::vector<float>{0.9F, 0.1F, 0.8F, 0.2F}, 2, 2, dictionary), Reading{});
  EXPECT_EQ(*read_ctc({}, 0, 2, dictionary), Reading{});
}

TEST(Ctc, OfAnotherDictionaryOrOfNanIsRefused) {
  const Dictionary dictionary = *Dictionary::parse("a\nb\n", false, "en.txt");
  const std::vector<float> values(8);
  EXPECT_EQ(read_ctc(values, 2, 4, dictionary).error().message,
            "dictionary en.txt: has 3 characters with the blank, and the model has 4 classes; is the space missing (use_space_char)?");
  EXPECT_EQ(dictionary.fits(97).error().message, "dictionary en.txt: has 3 characters with the blank, and the model has 97 classes");
  EXPECT_TRUE(dictionary.fits(3));
  EXPECT_TRUE(dictionary.fits(2));
  EXPECT_FALSE(read_ctc(values, 3, 3, dictionary));
  EXPECT_FALSE(read_ctc(values, -1, 0, dictionary));
  EXPECT_FALSE(read_ctc(values, int64_t{1} << 62, 2, dictionary));
  const std::vector<float> nan = {0, 1, 0, 0, std::numeric_limits<float>::quiet_NaN(), 0};
  EXPECT_EQ(read_ctc(nan, 2, 3, dictionary).error().message, "the recogniser's output has NaN in step 1");
  EXPECT_EQ(read_ctc(std::vector<float>{0, std::numeric_limits<float>::infinity()}, 1, 2, dictionary)->text, "a");
}

TEST(Ctc, DictionariesAreCheckedWhenTheyAreRead) {
  EXPECT_EQ(Dictionary::parse("", true, "x").error().message, "dictionary x: is empty");
  EXPECT_EQ(Dictionary::parse("a\n\xff\n", true, "x").error().message, "dictionary x: is not UTF-8");
  EXPECT_EQ(Dictionary::load("/does/not/exist", true).error().code, Code::kNotFound);
  const auto file = Dictionary::load(test_data("vision/characters.txt"), true);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->classes(), 9);
  EXPECT_EQ(file->character(8), " ");
  EXPECT_EQ(file->character(2), "b");
}

TEST(AnswerJson, OfDetectionsIsCocos) {
  const std::vector<Detection> found = {{0, 0.5F, 1, 2, 4.5F, 6}, {7, 0.25F, 0, 0, 1, 1}};
  EXPECT_EQ(detections_as_json(found, std::vector<std::string>{"a \"cat\""}),
            R"([{"bbox":[1,2,3.5,4],"category_id":0,"category":"a \"cat\"","score":0.5},{"bbox":[0,0,1,1],"category_id":7,"score":0.25}])");
  EXPECT_EQ(detections_as_json({}, {}), "[]");
}

TEST(AnswerJson, OfTextsIsPaddleOcrs) {
  const TextLine line{.box = {.points = {{{1, 2}, {11, 2}, {11, 8}, {1, 8.5F}}}, .score = 0.9F},
                      .reading = {.text = "中\"", .score = 0.75F}};
  EXPECT_EQ(texts_as_json(std::span(&line, 1)), R"([{"confidence":0.75,"text":"中\"","text_region":[[1,2],[11,2],[11,8],[1,8.5]]}])");
  EXPECT_EQ(texts_as_json({}), "[]");
}

TEST(AnswerJson, IsJsonWhateverTheNumbersAre) {
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<Detection> found = {{-1, infinite, 0, -infinite, 1e30F, std::numeric_limits<float>::quiet_NaN()}};
  const auto text = detections_as_json(found, {});
  boost::system::error_code error;
  boost::json::parse(text, error);
  EXPECT_FALSE(error) << text;
  EXPECT_NE(text.find("null"), std::string::npos);
}

}  // namespace
}  // namespace serin::steps
