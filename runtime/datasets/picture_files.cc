#include "runtime/datasets/picture_files.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "runtime/base/file.h"

namespace serin::datasets {

Status read_picture(const std::string& path, Rows& rows, Cell& cell) {
  constexpr size_t kMostBytes = size_t{256} << 20;
  SERIN_TRY(std::string bytes, read_file(path, kMostBytes));
  cell = {Cell::Kind::kText, {}, rows.memory.emplace_back(std::move(bytes))};
  return {};
}

bool is_picture(const std::string& name) {
  constexpr std::array<std::string_view, 7> kEndings = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".pgm", ".ppm"};
  std::string ending = std::filesystem::path(name).extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

}  // namespace serin::datasets
