// picture_files.h: pictures in files of their own, as a column. Internal to runtime/datasets.
#pragma once

#include <string>

#include "runtime/datasets/dataset.h"

namespace serin::datasets {

/// Reads a picture's file into a cell; a file that cannot be read is a fault of its row.
Status read_picture(const std::string& path, Rows& rows, Cell& cell);

/// Whether the name ends as those of pictures that Serin decodes: .jpg, .jpeg, .png, .webp, .bmp, .pgm, .ppm, in any case.
bool is_picture(const std::string& name);

}  // namespace serin::datasets
