// config_recording.h: Reads `recording:` of a service in router.yaml.
#pragma once

#include "router/config/config.h"
#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::router {

/// Reads the key file as well: a key that is missing or that others can read is an error of the configuration.
Result<RecordingConfig> read_recording(const config::Node& node);

}  // namespace serin::router
