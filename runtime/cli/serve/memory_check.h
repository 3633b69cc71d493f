// memory_check.h: refuses a model that cannot fit into the memory before it is read (`serve --memory-check`), with the sentence of `serin plan`.
#pragma once

#include <functional>
#include <string>

#include "runtime/planner/answer.h"
#include "runtime/serving/settings/settings.h"

namespace serin::cli {

/// The memory is the smallest limit of the process's control groups, or that of the machine, and all swap.
/// `how`: refuse, warn or off, for which it is empty. Models on devices are not checked: a device's own plan refuses those that do not fit.
std::function<Status(const std::string& name, const std::string& path, const serving::ModelSettings& settings)> memory_check(
    const std::string& how, planner::Machine machine);

}  // namespace serin::cli
