#include "runtime/cli/data_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/cli/npy.h"
#include "runtime/formats/onnx/onnx.h"

namespace serin::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "test_data_set_";

bool has_input(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "input_0.pb", ignored) || fs::exists(folder / "input_0.npy", ignored);
}

/// test_data_set_10 comes after test_data_set_9: shorter numbers first.
bool in_order(const DataSet& a, const DataSet& b) { return std::pair(a.name.size(), a.name) < std::pair(b.name.size(), b.name); }

}  // namespace

Result<std::vector<DataSet>> find_data_sets(const std::string& folder) {
  std::error_code error;
  std::vector<DataSet> sets;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.starts_with(kPrefix)) sets.push_back({name, entry->path()});
  }
  if (error) return Error{Code::kNotFound, fmt::format("{}: cannot be listed: {}", folder, error.message())};
  if (sets.empty() && has_input(folder)) sets.push_back({fs::path(folder).lexically_normal().filename(), folder});
  if (sets.empty())
    return Error{Code::kNotFound, fmt::format("{}: has neither test_data_set_* folders nor an input_0.pb or input_0.npy", folder)};
  std::ranges::sort(sets, in_order);
  return sets;
}

Result<std::vector<graph::ConstantPtr>> read_tensors(const DataSet& set, const std::string& prefix) {
  std::vector<graph::ConstantPtr> tensors;
  while (true) {
    const fs::path stem = fs::path(set.folder) / fmt::format("{}_{}", prefix, tensors.size());
    const std::string pb = stem.string() + ".pb", npy = stem.string() + ".npy";
    std::error_code ignored;
    const bool is_pb = fs::exists(pb, ignored);
    if (!is_pb && !fs::exists(npy, ignored)) return tensors;
    SERIN_TRY(graph::ConstantPtr tensor, is_pb ? formats::read_tensor_file(pb) : read_npy_file(npy));
    tensors.push_back(std::move(tensor));
  }
}

}  // namespace serin::cli
