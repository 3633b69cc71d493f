// image_folder.cc: a folder for each class, as torchvision's ImageFolder: classes are numbered in the order of their names, and pictures
// are looked for at any depth below. Pictures right in the folder, without any class, are rows without a label.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "runtime/datasets/picture_files.h"
#include "runtime/datasets/readers.h"

namespace serin::datasets {
namespace {

namespace fs = std::filesystem;

struct Picture {
  std::string path;   ///< below the folder
  std::string label;  ///< empty: none
  std::string number;
};

class ImageFolder : public Dataset {
 public:
  ImageFolder(std::string folder, std::vector<Picture> pictures) : folder_(std::move(folder)), pictures_(std::move(pictures)) {}

  int64_t rows() const override { return static_cast<int64_t>(pictures_.size()); }
  std::span<const std::string> columns() const override { return names_; }
  std::string place(int64_t row) const override { return fmt::format("{}, row {}", path(static_cast<size_t>(row)), row); }
  std::vector<std::string> files() const override {
    std::vector<std::string> all;
    for (size_t i = 0; i < pictures_.size(); ++i) all.push_back(path(i));
    return all;
  }

  Result<Rows> read(int64_t first, int64_t count, std::span<const size_t> columns) const override {
    Rows rows{.first = first, .columns = columns.size(), .cells = {}, .faults = {}, .memory = {}};
    for (int64_t row = first; row < first + count; ++row) {
      const auto index = static_cast<size_t>(row);
      const Picture& picture = pictures_[index];
      std::optional<Error> fault;
      for (const size_t column : columns) {
        Cell& cell = rows.cells.emplace_back();
        if (column == kImage) {
          if (const Status read = read_picture(path(index), rows, cell); !read) fault = read.error();
          continue;
        }
        const std::string& text = column == kPath ? picture.path : column == kLabel ? picture.label : picture.number;
        if (!text.empty()) cell = {column == kClass ? Cell::Kind::kJson : Cell::Kind::kText, {}, text};
      }
      rows.faults.push_back(std::move(fault));
    }
    return rows;
  }

 private:
  enum : size_t { kImage, kPath, kLabel, kClass };
  std::string path(size_t index) const { return (fs::path(folder_) / pictures_[index].path).string(); }

  const std::string folder_;
  const std::vector<Picture> pictures_;
  const std::array<std::string, 4> names_ = {"image", "path", "label", "class"};
};

}  // namespace

Result<std::shared_ptr<const Dataset>> open_image_folder(const std::string& path) {
  std::vector<std::string> found;
  std::error_code failure;
  for (fs::recursive_directory_iterator entry(path, fs::directory_options::follow_directory_symlink, failure), end;
       !failure && entry != end; entry.increment(failure))
    if (is_picture(entry->path().string()) && entry->is_regular_file(failure)) found.push_back(fs::relative(entry->path(), path).string());
  if (failure) return Error{Code::kIo, fmt::format("{}: cannot be listed: {}", path, failure.message())};
  if (found.empty()) return Error{Code::kNotFound, path + ": has no pictures (.jpg, .jpeg, .png, .webp, .bmp, .pgm, .ppm)"};
  std::ranges::sort(found);
  std::vector<std::string> classes;
  const auto class_of = [](const std::string& name) { return name.substr(0, std::min(name.find('/'), name.size())); };
  for (const std::string& name : found)
    if (name.find('/') != std::string::npos && (classes.empty() || classes.back() != class_of(name))) classes.push_back(class_of(name));
  std::ranges::sort(classes);  // "a b/x" comes before "a/x", "a" before "a b"
  classes.erase(std::ranges::unique(classes).begin(), classes.end());
  std::vector<Picture> pictures;
  for (std::string& name : found) {
    Picture& picture = pictures.emplace_back();
    if (name.find('/') != std::string::npos) {
      picture.label = class_of(name);
      picture.number = fmt::to_string(std::ranges::lower_bound(classes, picture.label) - classes.begin());
    }
    picture.path = std::move(name);
  }
  return std::make_shared<ImageFolder>(path, std::move(pictures));
}

}  // namespace serin::datasets
