// signing_keys.h: Reads the keys that sign webhooks (Standard Webhooks, https://www.standardwebhooks.com).
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace serin::router {

/// Lines "whsec_<base64>" of a file that only its owner may read. No error message contains a key.
Result<std::vector<std::string>> read_signing_keys(const std::string& path);

}  // namespace serin::router
