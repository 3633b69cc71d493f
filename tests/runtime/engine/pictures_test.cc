// ImageDecoder: the ONNX suite has one picture of each format; here are colours, damage, other formats and limits.

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/runtime/engine/support.h"

namespace serin::engine {
namespace {

using test::model_of;
using ::testing::HasSubstr;

Value bytes_value(std::string_view bytes) {
  const FreshTensor fresh = fresh_tensor(DType::kUInt8, Shape{static_cast<int64_t>(bytes.size())});
  std::memcpy(fresh.view.data, bytes.data(), bytes.size());
  return Value::of(fresh.tensor);
}

std::string picture(const std::string& name) {
  std::ifstream file(std::string(SERIN_TEST_DATA) + "/images/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::shared_ptr<Model> decoder(const std::string& format = "RGB", LoadOptions options = {}) {
  return model_of("x: u8[n]\ny = ImageDecoder(x, pixel_format=" + format + ")\nreturn y\n", test::best(), std::move(options));
}

/// The shape, or the error.
std::string decoded_shape(const std::string& file, const std::string& format = "RGB", LoadOptions options = {}) {
  const auto results = decoder(format, std::move(options))->run(std::vector{bytes_value(file)});
  return results ? results->at(0).tensor->shape.str() : results.error().message;
}

std::vector<uint8_t> decoded(const std::string& file, const std::string& format) {
  const auto results = decoder(format)->run(std::vector{bytes_value(file)});
  if (!results) return {};
  const auto pixels = results->at(0).tensor->span<uint8_t>();
  return {pixels.begin(), pixels.end()};
}

TEST(ImageDecoder, DecodesAPortablePixmapToItsOwnBytes) {
  const std::string file = picture("colours.ppm");
  const std::vector<uint8_t> rgb = decoded(file, "RGB");
  ASSERT_FALSE(rgb.empty());
  EXPECT_EQ(std::string(rgb.begin(), rgb.end()), file.substr(file.size() - rgb.size()));
  const std::vector<uint8_t> bgr = decoded(file, "BGR"), grey = decoded(file, "Grayscale");
  ASSERT_EQ(bgr.size(), rgb.size());
  ASSERT_EQ(grey.size(), rgb.size() / 3);
  for (size_t i = 0; i < rgb.size(); i += 3) {
    ASSERT_EQ(bgr[i], rgb[i + 2]);
    ASSERT_EQ(bgr[i + 2], rgb[i]);
    ASSERT_EQ(grey[i / 3], (19595U * rgb[i] + 38470U * rgb[i + 1] + 7471U * rgb[i + 2] + 0x8000U) >> 16);
  }
}

TEST(ImageDecoder, IsFollowedByWhatItsSizeDecides) {
  const auto model =
      model_of("x: u8[n]\np = ImageDecoder(x)\nf = Cast(p, to=f32)\ny = Transpose(f, perm=[2,0,1])\nreturn y\n", test::best());
  ASSERT_TRUE(model);
  EXPECT_FALSE(model->planned());
  for (const char* const name : {"colours.png", "source_66.ppm", "grey.jpg"}) {
    const auto results = model->run(std::vector{bytes_value(picture(name))});
    ASSERT_TRUE(results) << results.error().message;
    const Shape& shape = results->at(0).tensor->shape;
    EXPECT_EQ(shape[0], 3) << name;
    EXPECT_EQ("[" + std::to_string(shape[1]) + "," + std::to_string(shape[2]) + ",3]", decoded_shape(picture(name))) << name;
  }
}

TEST(ImageDecoder, DoesNotTurnAPicture) {
  const auto as_stored = decoded(picture("turned_1.jpg"), "RGB");  // all have the same pixels, and EXIF data that asks for another turn
  ASSERT_FALSE(as_stored.empty());
  for (const char* const name : {"turned_3.jpg", "turned_6.jpg", "turned_8.jpg"}) {
    EXPECT_EQ(decoded(picture(name), "RGB"), as_stored) << name;
    EXPECT_EQ(decoded_shape(picture(name)), decoded_shape(picture("turned_1.jpg"))) << name;
  }
}

TEST(ImageDecoder, GivesNothingForADamagedFileAndForNoPicture) {
  const std::string jpeg = picture("baseline.jpg");
  EXPECT_EQ(decoded_shape(jpeg.substr(0, jpeg.size() / 2)), "[0,0,3]");
  EXPECT_EQ(decoded_shape(jpeg.substr(0, jpeg.size() / 2), "Grayscale"), "[0,0,1]");
  EXPECT_EQ(decoded_shape("no picture at all"), "[0,0,3]");
  EXPECT_EQ(decoded_shape(""), "[0,0,3]");
}

TEST(ImageDecoder, NamesAFormatThatIsNotDecoded) {
  using namespace std::string_literals;
  EXPECT_THAT(decoded_shape("II*\0and more"s), HasSubstr("a TIFF is not decoded"));
  EXPECT_THAT(decoded_shape("\0\0\0\x0cjP  and more"s), HasSubstr("a JPEG 2000 is not decoded"));
}

TEST(ImageDecoder, M12_AFewBytesThatAskForManyPixels) {
  const std::string bomb = "P6 30000 30000 255\n";
  EXPECT_THAT(decoded_shape(bomb), HasSubstr("a PNM of 30000 x 30000 pixels; 64000000 pixels are allowed"));
  EXPECT_THAT(decoded_shape(picture("colours.ppm"), "RGB", {.max_arena_bytes = 300}), HasSubstr("100 pixels are allowed"));
}

TEST(ImageDecoder, M9_RefusesWhatIsNoFile) {
  EXPECT_THAT(test::refusal_of("x: f32[n]\ny = ImageDecoder(x)\nreturn y\n"), HasSubstr("it must be u8"));
  EXPECT_THAT(test::refusal_of("x: u8[n,2]\ny = ImageDecoder(x)\nreturn y\n"), HasSubstr("it must be [bytes]"));
  EXPECT_THAT(test::refusal_of("x: u8[n]\ny = ImageDecoder(x, pixel_format=CMYK)\nreturn y\n"),
              HasSubstr("pixel_format is 'CMYK', it must be RGB, BGR or Grayscale"));
}

}  // namespace
}  // namespace serin::engine
