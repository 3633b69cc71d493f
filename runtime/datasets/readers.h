// readers.h: one function for each kind of data that open() knows. Internal to runtime/datasets.
#pragma once

#include <memory>
#include <string>

#include "runtime/datasets/dataset.h"

namespace serin::datasets {

/// NumPy's archive as numpy.savez writes it. A column is an array; axis 0 of all counts rows.
Result<std::shared_ptr<const Dataset>> open_npz(const std::string& path);
/// One JSON object a line.
Result<std::shared_ptr<const Dataset>> open_jsonl(const std::string& path);
/// RFC 4180, with a header.
Result<std::shared_ptr<const Dataset>> open_csv(const std::string& path, char separator);
/// FOLDER/<class>/x.jpg, as torchvision's ImageFolder. Columns: image (bytes of the file), path, label (name of the class), class (its number).
Result<std::shared_ptr<const Dataset>> open_image_folder(const std::string& path);
/// Apache Parquet, with the plugin at `plugin_path`; empty: next to the program, or in ../lib from there. kUnsupported: it is not installed.
Result<std::shared_ptr<const Dataset>> open_parquet(const std::string& path, const std::string& plugin_path = {});
/// COCO's instances file; pictures are next to it, or in ../images or in ../<name of the set>. Columns: image, file_name, image_id, annotations.
Result<std::shared_ptr<const Dataset>> open_coco(const std::string& path);

}  // namespace serin::datasets
