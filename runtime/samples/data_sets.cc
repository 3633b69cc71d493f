#include "runtime/samples/data_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/formats/onnx/value_file.h"
#include "runtime/samples/npy.h"

namespace serin::samples {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "test_data_set_";

/// A file of that name with any ending but those of tensors; of several the first by name.
std::optional<fs::path> find_element(const fs::path& folder, const std::string& name) {
  std::optional<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    const bool tensor = path.extension() == ".pb" || path.extension() == ".npy";
    std::error_code unreadable;
    if (path.stem() != name || !path.has_extension() || tensor || !entry->is_regular_file(unreadable)) continue;
    if (!found || path < *found) found = path;
  }
  return found;
}

bool has_input(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "input_0.pb", ignored) || fs::exists(folder / "input_0.npy", ignored) || find_element(folder, "input_0");
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

namespace {

engine::Value value_of(const formats::FileValue& read, DType dtype) {
  if (read.tensor) return engine::Value::of(read.tensor);
  const bool optional = read.kind == graph::ValueKind::kOptional || read.kind == graph::ValueKind::kOptionalSequence;
  engine::Value value{optional ? graph::ValueKind::kOptional : read.kind, dtype, nullptr, {}};
  for (const formats::FileValue& element : read.elements) value.elements.push_back(value_of(element, dtype));
  return value;
}

Result<engine::Value> read_value(const std::string& pb, const engine::TensorInfo* info) {
  SERIN_TRY(const formats::FileValue read, formats::read_value_file(pb, info ? info->kind : graph::ValueKind::kTensor));
  return value_of(read, info ? info->dtype : DType::kUndefined);
}

Result<engine::Value> read_element(const fs::path& path) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  SERIN_TRY(std::string bytes, read_file(path.string(), kMostBytes));
  const engine::FreshTensor made = engine::fresh_tensor(DType::kString, {1});
  *made.view.as<std::string>() = std::move(bytes);
  return engine::Value::of(made.tensor);
}

}  // namespace

Result<std::vector<engine::Value>> read_values(const DataSet& set, const std::string& prefix, std::span<const engine::TensorInfo> infos) {
  std::vector<engine::Value> values;
  while (true) {
    const std::string name = fmt::format("{}_{}", prefix, values.size());
    const fs::path stem = fs::path(set.folder) / name;
    const std::string pb = stem.string() + ".pb", npy = stem.string() + ".npy";
    std::error_code ignored;
    if (fs::exists(pb, ignored)) {
      SERIN_TRY(engine::Value value, read_value(pb, values.size() < infos.size() ? &infos[values.size()] : nullptr));
      values.push_back(std::move(value));
    } else if (fs::exists(npy, ignored)) {
      SERIN_TRY(graph::ConstantPtr tensor, read_npy_file(npy));
      values.push_back(engine::Value::of(std::move(tensor)));
    } else if (const auto element = find_element(set.folder, name)) {
      SERIN_TRY(engine::Value value, read_element(*element));
      values.push_back(std::move(value));
    } else {
      return values;
    }
  }
}

}  // namespace serin::samples
