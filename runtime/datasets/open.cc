#include "runtime/datasets/open.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/datasets/readers.h"

namespace serin::datasets {

Result<std::shared_ptr<const Dataset>> open(const std::string& path) {
  std::error_code unreadable;
  const auto status = std::filesystem::status(path, unreadable);
  if (status.type() == std::filesystem::file_type::not_found) return Error{Code::kNotFound, path + ": no such file or folder"};
  if (std::filesystem::is_directory(status)) return open_image_folder(path);
  std::string ending = std::filesystem::path(path).extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (ending == ".npz") return open_npz(path);
  if (ending == ".jsonl" || ending == ".ndjson") return open_jsonl(path);
  if (ending == ".csv") return open_csv(path, ',');
  if (ending == ".tsv") return open_csv(path, '\t');
  if (ending == ".json") return open_coco(path);
  if (ending == ".parquet") return open_parquet(path);
  return Error{Code::kUnsupported, fmt::format("{}: '{}' is no known kind of data; known: .npz, .jsonl, .ndjson, .csv, .tsv, "
                                               ".parquet, .json (COCO), a folder of pictures",
                                               path, ending)};
}

}  // namespace serin::datasets
