// coco_dataset.cc: the instances file of COCO: https://cocodataset.org/#format-data. A row is a picture; its annotations are one JSON list
// of {"bbox": [x, y, width, height], "category_id", "category": its name, "area", "iscrowd"}.

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "runtime/base/file.h"
#include "runtime/base/json_quote.h"
#include "runtime/datasets/picture_files.h"
#include "runtime/datasets/readers.h"

namespace serin::datasets {
namespace {

namespace fs = std::filesystem;

struct CocoPicture {
  std::string file_name, id, annotations;
};

class CocoDataset : public Dataset {
 public:
  CocoDataset(std::string path, std::string folder, std::vector<CocoPicture> pictures)
      : path_(std::move(path)), folder_(std::move(folder)), pictures_(std::move(pictures)) {}

  int64_t rows() const override { return static_cast<int64_t>(pictures_.size()); }
  std::span<const std::string> columns() const override { return names_; }
  std::string place(int64_t row) const override {
    return fmt::format("{}, row {} ({})", path_, row, pictures_[static_cast<size_t>(row)].file_name);
  }
  std::vector<std::string> files() const override {
    std::vector<std::string> all{path_};
    for (const CocoPicture& picture : pictures_) all.push_back((fs::path(folder_) / picture.file_name).string());
    std::sort(all.begin() + 1, all.end());
    return all;
  }

  Result<Rows> read(int64_t first, int64_t count, std::span<const size_t> columns) const override {
    Rows rows{.first = first, .columns = columns.size(), .cells = {}, .faults = {}, .memory = {}};
    for (int64_t row = first; row < first + count; ++row) {
      const CocoPicture& picture = pictures_[static_cast<size_t>(row)];
      std::optional<Error> fault;
      for (const size_t column : columns) {
        Cell& cell = rows.cells.emplace_back();
        if (column == kCocoImage) {
          if (const Status read = read_picture((fs::path(folder_) / picture.file_name).string(), rows, cell); !read) fault = read.error();
        } else if (column == kCocoName) {
          cell = {Cell::Kind::kText, {}, picture.file_name};
        } else {
          cell = {Cell::Kind::kJson, {}, column == kCocoId ? picture.id : picture.annotations};
        }
      }
      rows.faults.push_back(std::move(fault));
    }
    return rows;
  }

 private:
  enum : size_t { kCocoImage, kCocoName, kCocoId, kCocoAnnotations };
  const std::string path_, folder_;
  const std::vector<CocoPicture> pictures_;
  const std::array<std::string, 4> names_ = {"image", "file_name", "image_id", "annotations"};
};

/// Parts of the file that are not as the format says; `where` is like "annotations[3]".
Error bad_part(const std::string& path, std::string_view where, std::string_view wanted) {
  return {Code::kCorrupt, fmt::format("{}: {}: {}", path, where, wanted)};
}

using Element = simdjson::dom::element;

Result<std::map<int64_t, std::string>> read_categories(const std::string& path, const Element& root) {
  simdjson::dom::array list;
  if (root["categories"].get(list) != simdjson::SUCCESS) return bad_part(path, "categories", "must be a list");
  std::map<int64_t, std::string> names;
  size_t at = 0;
  for (const Element item : list) {
    int64_t id = 0;
    std::string_view name;
    const std::string where = fmt::format("categories[{}]", at++);
    if (item["id"].get(id) != simdjson::SUCCESS || item["name"].get(name) != simdjson::SUCCESS)
      return bad_part(path, where, "needs an integer 'id' and a text 'name'");
    if (!names.emplace(id, name).second) return bad_part(path, where, fmt::format("id {} is there twice", id));
  }
  return names;
}

/// Appends the annotation to the list of its picture.
Status read_annotation(const std::string& path, const std::string& where, const Element& item, const std::map<int64_t, std::string>& names,
                       std::map<int64_t, std::string>& of_pictures) {
  int64_t picture = 0, category = 0, crowd = 0;
  simdjson::dom::array box;
  if (item["image_id"].get(picture) != simdjson::SUCCESS || item["category_id"].get(category) != simdjson::SUCCESS)
    return bad_part(path, where, "needs integers 'image_id' and 'category_id'");
  if (item["bbox"].get(box) != simdjson::SUCCESS || box.size() != 4) return bad_part(path, where, "needs 'bbox': [x, y, width, height]");
  std::array<double, 4> sides{};
  size_t side = 0;
  for (const Element number : box)
    if (number.get(sides[side++]) != simdjson::SUCCESS) return bad_part(path, where, "'bbox' must have numbers");
  double area = sides[2] * sides[3];
  if (const auto given = item["area"]; given.error() == simdjson::SUCCESS && given.get(area) != simdjson::SUCCESS)
    return bad_part(path, where, "'area' must be a number");
  if (const auto given = item["iscrowd"]; given.error() == simdjson::SUCCESS && given.get(crowd) != simdjson::SUCCESS)
    return bad_part(path, where, "'iscrowd' must be 0 or 1");
  const auto name = names.find(category);
  if (name == names.end()) return bad_part(path, where, fmt::format("category {} is none of 'categories'", category));
  const auto list = of_pictures.find(picture);
  if (list == of_pictures.end()) return bad_part(path, where, fmt::format("image {} is none of 'images'", picture));
  std::string& text = list->second;
  text += text.empty() ? "[" : ",";
  text += fmt::format(R"({{"bbox":[{},{},{},{}],"category_id":{},"category":)", sides[0], sides[1], sides[2], sides[3], category);
  append_json_quoted(text, name->second);
  text += fmt::format(R"(,"area":{},"iscrowd":{}}})", area, crowd);
  return {};
}

/// Where the pictures are, by the first one that is found.
std::string find_pictures(const std::string& path, const std::string& name) {
  const fs::path folder = fs::path(path).parent_path();
  std::string set = fs::path(path).stem().string();
  set = set.substr(set.find('_') + 1);  // instances_val2017
  for (const fs::path& place : {folder, folder / "images", folder / "../images", folder / ".." / set, folder / "../images" / set}) {
    std::error_code unreadable;
    if (fs::exists(place / name, unreadable)) return place.lexically_normal().string();
  }
  return folder.string();
}

}  // namespace

Result<std::shared_ptr<const Dataset>> open_coco(const std::string& path) {
  constexpr size_t kMostBytes = size_t{2} << 30;
  SERIN_TRY(std::string text, read_file(path, kMostBytes));
  simdjson::dom::parser parser;
  Element root;
  if (const auto code = parser.parse(text).get(root)) return bad_part(path, "not JSON", simdjson::error_message(code));
  simdjson::dom::array images, annotations;
  if (root["images"].get(images) != simdjson::SUCCESS || root["annotations"].get(annotations) != simdjson::SUCCESS)
    return bad_part(path, "not COCO's format", "it needs the lists 'images', 'annotations' and 'categories'; for rows, write .jsonl");
  SERIN_TRY(const auto names, read_categories(path, root));

  std::vector<CocoPicture> pictures;
  std::map<int64_t, std::string> lists;
  std::vector<int64_t> ids;
  for (const Element item : images) {
    int64_t id = 0;
    std::string_view name;
    const std::string where = fmt::format("images[{}]", ids.size());
    if (item["id"].get(id) != simdjson::SUCCESS || item["file_name"].get(name) != simdjson::SUCCESS)
      return bad_part(path, where, "needs an integer 'id' and a text 'file_name'");
    if (!lists.emplace(id, "").second) return bad_part(path, where, fmt::format("id {} is there twice", id));
    ids.push_back(id);
    pictures.push_back({std::string(name), fmt::to_string(id), {}});
  }
  if (pictures.empty()) return bad_part(path, "images", "there are none");
  size_t at = 0;
  for (const Element item : annotations) SERIN_CHECK(read_annotation(path, fmt::format("annotations[{}]", at++), item, names, lists));
  for (size_t i = 0; i < pictures.size(); ++i) {
    std::string& list = lists[ids[i]];
    pictures[i].annotations = list.empty() ? "[]" : std::move(list) + "]";
  }
  std::string folder = find_pictures(path, pictures.front().file_name);
  return std::make_shared<CocoDataset>(path, std::move(folder), std::move(pictures));
}

}  // namespace serin::datasets
