// npz.h: reads NumPy's .npz archives, as numpy.savez writes them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/graph/graph.h"

namespace serin::cli {

/// Returns the arrays by name, without ".npy". kUnsupported for compressed archives (numpy.savez_compressed) and those over 4 GiB.
Result<std::map<std::string, graph::ConstantPtr>> read_npz(std::string_view bytes);
Result<std::map<std::string, graph::ConstantPtr>> read_npz_file(const std::string& path);

}  // namespace serin::cli
