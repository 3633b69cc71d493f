// vision_cases.h: reads the fixtures of tests/data/vision, which are words and numbers in lines.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/steps/decode.h"
#include "runtime/steps/vision/detection.h"

namespace serin::steps {

inline std::filesystem::path test_data(const std::string& name) { return std::filesystem::path(SERIN_TEST_DATA) / name; }

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

inline Image picture_of(const std::string& name, Color color = Color::kRgb) {
  const std::string text = text_of(test_data(name));
  const auto image = decode_image(std::as_bytes(std::span(text)), {.color = color});
  EXPECT_TRUE(image) << name;
  return image ? *image : Image{};
}

inline uint64_t fnv1a(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

/// The numbers of a line `NAME COUNT number...`.
inline std::vector<float> numbers_of(std::istream& lines, const std::string& name) {
  std::string line, word;
  std::getline(lines, line);
  std::istringstream words(line);
  size_t count = 0;
  words >> word >> count;
  EXPECT_EQ(word, name);
  std::vector<float> numbers;
  while (words >> word) numbers.push_back(std::strtof(word.c_str(), nullptr));
  EXPECT_EQ(numbers.size(), count);
  return numbers;
}

/// From rows of label, score and corners.
inline std::vector<Detection> detections_of(const std::vector<float>& numbers) {
  std::vector<Detection> made;
  for (size_t i = 0; i + 6 <= numbers.size(); i += 6)
    made.push_back({static_cast<int64_t>(numbers[i]), numbers[i + 1], numbers[i + 2], numbers[i + 3], numbers[i + 4], numbers[i + 5]});
  return made;
}

}  // namespace serin::steps
