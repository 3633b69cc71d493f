// slot.h: the runtimes of a slot, asked directly: which version they serve, and whether it answers.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "runtime/base/result.h"
#include "runtime/cli/release/policy.h"

namespace serin::cli {

struct NotServing {
  std::string text;     ///< what the runtime does instead
  bool failed = false;  ///< it says that it cannot load the version
};
/// Nothing: the runtime serves exactly this version of the model, and it is ready.
std::optional<NotServing> not_serving(const std::string& runtime, const std::string& model, uint64_t version);

/// Sends a few requests to each runtime of the slot, with rows of `data` if that is an archive. Returns a sentence; the error is one, too.
Result<std::string> smoke(const Slot& slot, const std::string& model, const std::string& data, const std::string& work);

}  // namespace serin::cli
