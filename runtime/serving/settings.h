// settings.h: models/<name>/serin.yaml, all of it optional.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/result.h"

namespace serin::serving {

struct ModelSettings {
  int64_t max_batch = 32;        ///< rows in one run; 1 where the model is not batchable
  std::optional<int> instances;  ///< runs at the same time; default: one for each compute thread
  int threads = 1;               ///< cores for one run
  size_t queue_limit = 256;      ///< requests waiting; over it 429
  bool warmup = true;            ///< run batch 1 before the version is ready
};

/// The defaults where there is no such file. Errors name file, line and what is allowed.
Result<ModelSettings> read_model_settings(const std::string& path);

}  // namespace serin::serving
