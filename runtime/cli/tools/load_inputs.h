// load_inputs.h: makes the request bodies of `serin load`, before the clock starts, from the model's metadata and an optional file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/protocol/oip/oip_rest.h"

namespace serin::cli {

using Bodies = std::vector<std::shared_ptr<const std::string>>;

/// Parses the inputs of GET /v2/models/M. kCorrupt if the text is something else.
Result<std::vector<protocol::TensorSpec>> parse_model_inputs(std::string_view metadata);

/// Makes bodies of `batch` random rows. A size that the model leaves open is `batch` for the first dimension and 1 for the others.
Result<Bodies> random_bodies(const std::vector<protocol::TensorSpec>& inputs, int64_t batch);

/// Makes bodies of `batch` consecutive rows of the .npz file's arrays, which have the inputs' names. After the last row comes the first.
Result<Bodies> file_bodies(const std::vector<protocol::TensorSpec>& inputs, int64_t batch, const std::string& path);

/// Whether the data of `serin load` are bodies as they stand: files of pictures or texts, not an .npz file.
bool are_bodies(const std::string& path);

/// Makes a body of a file, or of each file in a folder, in the order of their names: at most 4096 files and 1 GiB.
Result<Bodies> bodies_as_they_are(const std::string& path);

}  // namespace serin::cli
