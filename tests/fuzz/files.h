// files.h: files of inputs, and inputs that are several files in one.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace serin::fuzz {

/// Stands between the parts of an input that has several.
inline constexpr std::string_view kBetween = "\n===\n";

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace serin::fuzz
