// Pictures are decoded and resized to the last bit as PIL and OpenCV do (make_images.py asked them), and damaged ones are refused.
#include <cstdio>  // jpeglib.h needs FILE

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <jpeglib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/steps/decode.h"
#include "runtime/steps/decoders.h"
#include "runtime/steps/resize.h"
#include "runtime/steps/resize_loops.h"

namespace serin::steps {
namespace {

namespace fs = std::filesystem;

const fs::path kImages = fs::path(SERIN_TEST_DATA) / "images";

std::vector<std::byte> bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::byte> bytes(text.size());
  std::ranges::transform(text, bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

std::vector<std::byte> file(const std::string& name) {
  auto bytes = bytes_of(kImages / name);
  EXPECT_FALSE(bytes.empty()) << name;
  return bytes;
}

std::string described(const Image& image) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t byte : image.pixels) hash = (hash ^ byte) * 0x100000001b3;
  return fmt::format("{} {} {} {:016x}", image.width, image.height, image.channels, hash);
}

std::vector<std::string> names_of_pictures() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kImages))
    if (entry.path().extension() != ".txt") names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

TEST(Images, AreDecodedAndResizedAsPilAndOpenCvDo) {
  std::ifstream cases(kImages / "cases.txt");
  int count = 0;
  for (std::string line; std::getline(cases, line); ++count) {
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string kind, rule, source;
    int x = 0, y = 0;
    words >> kind >> rule;
    if (kind == "decode") words >> x >> source;
    if (kind == "resize") words >> x >> y >> source;
    const DecodeOptions options{.color = rule == "gray"  ? Color::kGray
                                         : rule == "bgr" ? Color::kBgr
                                                         : Color::kRgb,
                                .orient = kind != "decode" || x != 0};
    const auto image = decode_image(file(source), options);
    ASSERT_TRUE(image) << image.error().message;
    const std::string expected = line.substr(line.find(" = ") + 3);
    if (kind == "decode") {
      EXPECT_EQ(described(*image), expected);
    } else {
      const auto found = find_resample(rule);
      ASSERT_TRUE(found);
      EXPECT_EQ(described(resize(*image, x, y, *found)), expected);
    }
  }
  EXPECT_GT(count, 100);
}

TEST(Images, AreToldByTheirFirstBytes) {
  EXPECT_EQ(image_format(file("baseline.jpg")), "JPEG");
  EXPECT_EQ(image_format(file("colours.png")), "PNG");
  EXPECT_EQ(image_format(file("lossy.webp")), "WebP");
  EXPECT_EQ(image_format({}), std::nullopt);
  for (const std::string_view text : {"", "GIF89a.......", "not a picture", "%PDF-1.7", "II*\0...."}) {
    const auto refused = decode_image(std::as_bytes(std::span(text)));
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::kUnsupported) << text;
    EXPECT_NE(refused.error().message.find("PNG"), std::string::npos) << refused.error().message;
  }
}

/// No prefix of a file is a picture, but for what libraries allow to be missing at the end (padding, PNG's last chunk).
TEST(Images, M2_TruncatedOnesAreRefused) {
  for (const std::string& name : names_of_pictures()) {
    const auto whole = file(name);
    for (size_t size = 0; size + 16 < whole.size(); size += 1 + size / 40) {
      const auto refused = decode_image(std::span(whole).first(size));
      EXPECT_FALSE(refused) << name << " of " << size << " bytes";
    }
  }
}

TEST(Images, M2_DamagedOnesAreDecodedOrRefused) {
  std::mt19937 random(1);
  for (const std::string& name : names_of_pictures()) {
    const auto whole = file(name);
    for (int i = 0; i < 60; ++i) {
      auto damaged = whole;
      for (int flips = 0; flips < 3; ++flips) damaged[random() % damaged.size()] ^= std::byte{1} << (random() % 8);
      const auto image = decode_image(damaged, {.max_pixels = 100'000});
      if (!image) continue;
      EXPECT_EQ(image->pixels.size(), static_cast<size_t>(image->width) * static_cast<size_t>(image->height) * 3);
    }
  }
}

TEST(Images, LargerOnesThanAllowedAreRefusedBeforeTheirPixelsAreRead) {
  for (const std::string& name : names_of_pictures()) {
    const auto refused = decode_image(file(name), {.max_pixels = 33 * 21 - 1});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, Code::kTooLarge) << name;
  }
  // A PNG that says that it is huge, in few bytes.
  auto bomb = file("colours.png");
  bomb[16] = bomb[20] = std::byte{0x0f};
  const auto refused = decode_image(bomb);
  ASSERT_FALSE(refused);  // by its size, or by the checksum of its header
}

/// A valid progressive JPEG, grey, in which each coefficient has two scans of its own: 127.
std::vector<std::byte> jpeg_of_many_scans() {
  constexpr int kSize = 16;
  std::vector<jpeg_scan_info> scans = {{.comps_in_scan = 1, .component_index = {0}, .Ss = 0, .Se = 0, .Ah = 0, .Al = 0}};
  for (int bit = 1; bit >= 0; --bit)
    for (int k = 1; k < 64; ++k)
      scans.push_back({.comps_in_scan = 1, .component_index = {0}, .Ss = k, .Se = k, .Ah = bit == 1 ? 0 : 1, .Al = bit});
  jpeg_compress_struct encoder;
  jpeg_error_mgr errors;
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* made = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &made, &size);
  encoder.image_width = encoder.image_height = kSize;
  encoder.input_components = 1;
  encoder.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&encoder);
  encoder.scan_info = scans.data();
  encoder.num_scans = static_cast<int>(scans.size());
  jpeg_start_compress(&encoder, TRUE);
  std::vector<uint8_t> row(kSize);
  for (int y = 0; y < kSize; ++y) {
    for (int x = 0; x < kSize; ++x) row[static_cast<size_t>(x)] = static_cast<uint8_t>(x * y);
    JSAMPROW line = row.data();
    jpeg_write_scanlines(&encoder, &line, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  const auto* const first = reinterpret_cast<const std::byte*>(made);
  std::vector<std::byte> bytes(first, first + size);
  std::free(made);
  return bytes;
}

/// Each scan costs a visit of all pixels.
TEST(Images, OnesWithManyScansAreRefused) {
  const auto refused = decode_image(jpeg_of_many_scans());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "a damaged JPEG: more than 100 scans");
}

TEST(Orientation, IsReadInBothByteOrdersAndNothingElse) {
  const auto exif = [](std::string_view text) { return exif_orientation(std::as_bytes(std::span(text))); };
  using namespace std::string_view_literals;
  EXPECT_EQ(exif("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"sv), 6);
  EXPECT_EQ(exif("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0"sv), 8);
  EXPECT_EQ(exif("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x09\0\0\0"sv), 1);  // no such orientation
  EXPECT_EQ(exif("II*\0\x08\0\0\0\x01\0\x12\x01\x02\0\x01\0\0\0\x06\0\0\0"sv), 1);  // not a number
  EXPECT_EQ(exif("II*\0\xff\xff\xff\xff"sv), 1);                                    // a directory outside
  EXPECT_EQ(exif("II*\0\x08\0\0\0\xff\xff"sv), 1);                                  // entries that are not there
  EXPECT_EQ(exif(""), 1);
}

TEST(Resize, KnowsItsRulesByName) {
  EXPECT_EQ(find_resample("cv2.linear"), Resample::kCvLinear);
  EXPECT_EQ(find_resample("pil.lanczos"), Resample::kPilLanczos);
  EXPECT_EQ(find_resample("bilinear"), std::nullopt);
}

/// Of random pictures and weights, some of which are negative. The last row ends with its memory, which AddressSanitizer guards.
TEST(Images, AreResizedAlikeByEachInstructionSet) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2 here";
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const int channels = round % 2 == 0 ? 3 : 1, width = 1 + static_cast<int>(random() % 70), height = 1 + static_cast<int>(random() % 9);
    Image image = blank_image(width, height, channels);
    for (uint8_t& byte : image.pixels) byte = static_cast<uint8_t>(random());
    std::vector<Taps> taps(1 + random() % 40);
    for (Taps& each : taps) {
      each.first = static_cast<int>(random() % static_cast<unsigned>(width));
      each.weights.resize(1 + random() % static_cast<unsigned>(width - each.first));
      for (int32_t& weight : each.weights) weight = static_cast<int32_t>(random() % (3U << 20)) - (1 << 20);
    }
    std::vector<uint8_t> expected(taps.size() * static_cast<size_t>(channels)), found(expected.size());
    const uint8_t* const end = image.pixels.data() + image.pixels.size();
    kPortableResize.across(image.row(height - 1), end, taps, channels, expected.data());
    kAvx2Resize.across(image.row(height - 1), end, taps, channels, found.data());
    EXPECT_EQ(found, expected);
    const size_t line = static_cast<size_t>(width) * static_cast<size_t>(channels);
    std::vector<int32_t> weights(static_cast<size_t>(height));
    for (int32_t& weight : weights) weight = static_cast<int32_t>(random() % (3U << 20)) - (1 << 20);
    expected.resize(line);
    found.assign(line, 0);
    kPortableResize.down(image.pixels.data(), line, weights, line, expected.data());
    kAvx2Resize.down(image.pixels.data(), line, weights, line, found.data());
    EXPECT_EQ(found, expected);
  }
#endif
}

/// A crop of a resized picture needs no more of it.
TEST(Images, AreResizedInAWindowToTheSameBits) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    Image image = blank_image(1 + static_cast<int>(random() % 60), 1 + static_cast<int>(random() % 60), round % 3 == 0 ? 1 : 3);
    for (uint8_t& byte : image.pixels) byte = static_cast<uint8_t>(random());
    const int width = round % 5 == 0 ? image.width : 1 + static_cast<int>(random() % 60);
    const int height = round % 7 == 0 ? image.height : 1 + static_cast<int>(random() % 60);
    for (const char* const name :
         {"cv2.nearest", "cv2.linear", "cv2.area", "pil.nearest", "pil.box", "pil.bilinear", "pil.bicubic", "pil.lanczos"}) {
      Window window;
      window.left = static_cast<int>(random() % static_cast<unsigned>(width));
      window.top = static_cast<int>(random() % static_cast<unsigned>(height));
      window.width = 1 + static_cast<int>(random() % static_cast<unsigned>(width - window.left));
      window.height = 1 + static_cast<int>(random() % static_cast<unsigned>(height - window.top));
      const Image part = resize_window(image, width, height, *find_resample(name), window);
      const Image expected = cut(resize(image, width, height, *find_resample(name)), window);
      EXPECT_EQ(part.width, window.width);
      EXPECT_EQ(part.pixels, expected.pixels) << name << " " << width << " x " << height;
    }
  }
}

}  // namespace
}  // namespace serin::steps
