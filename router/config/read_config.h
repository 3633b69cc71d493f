// read_config.h: Reads router.yaml.
#pragma once

#include <string>

#include "router/config/config.h"
#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::router {

/// Errors name the file, line, column and allowed values. A missing file is kNotFound. `store`: see config_store.h.
Result<RouterConfig> load_config(const std::string& path, const std::string& store = {});
Result<RouterConfig> read_config(const config::Node& root, const std::string& store = {});

}  // namespace serin::router
