// load_inputs.h: what `serin load` sends: request bodies made once, before the clock starts, from the model's metadata and perhaps a file.
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

/// The inputs of GET /v2/models/M. kCorrupt where the text is not that.
Result<std::vector<protocol::TensorSpec>> parse_model_inputs(std::string_view metadata);

/// Bodies of `batch` random rows. Sizes that the model leaves open are `batch` for the first dimension and 1 for the others.
Result<Bodies> random_bodies(const std::vector<protocol::TensorSpec>& inputs, int64_t batch);

/// Bodies of `batch` consecutive rows of the .npz file's arrays, which are found by the inputs' names; the rows go round.
Result<Bodies> file_bodies(const std::vector<protocol::TensorSpec>& inputs, int64_t batch, const std::string& path);

}  // namespace serin::cli
