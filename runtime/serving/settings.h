// settings.h: models/<name>/serin.yaml, all of it optional.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::serving {

enum class Precision : uint8_t { kFp32, kBf16, kAuto };
/// "auto", "fp32" or "bf16".
std::optional<Precision> parse_precision(std::string_view word);

struct ModelSettings {
  int64_t max_batch = 32;        ///< rows in one run; 1 where the model is not batchable
  std::optional<int> instances;  ///< runs at the same time; default: one for each compute thread
  int threads = 1;               ///< cores for one run
  size_t queue_limit = 256;      ///< requests waiting; over it 429
  bool warmup = true;            ///< run batch 1 before the version is ready
  Precision precision = Precision::kFp32;
  std::string samples;  ///< a folder of inputs that `precision: auto` decides on; empty: made-up ones
};

/// `defaults` where there is no such file. Errors name file, line and what is allowed.
Result<ModelSettings> read_model_settings(const std::string& path, const ModelSettings& defaults = {});

}  // namespace serin::serving
