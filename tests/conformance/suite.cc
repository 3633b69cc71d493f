// suite.cc: folders and files. A case is what the suite's own loader would make of its folder (onnx/backend/test/loader): inputs in the order
// of the graph's, each in the message that its type asks for, and a tolerance that data.json may change.

#include "tests/conformance/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/formats/onnx/value_file.h"
#include "tests/conformance/values.h"

namespace serin::conformance {
namespace {

namespace fs = std::filesystem;

constexpr cli::Tolerance kTolerance{.rtol = 1e-3, .atol = 1e-7, .absolute_atol = true};

/// <root>/lib/python3.x/site-packages/onnx/backend/test/data, whichever Python made the environment; or <root> itself.
fs::path data_folder(const fs::path& root) {
  std::error_code ignored;
  if (fs::is_directory(root / kSets[0], ignored)) return root;
  for (fs::directory_iterator entry(root / "lib", ignored), end; entry != end; entry.increment(ignored)) {
    const fs::path data = entry->path() / "site-packages/onnx/backend/test/data";
    if (fs::is_directory(data, ignored)) return data;
  }
  return {};
}

cli::Tolerance tolerance_of(const Case& test) {
  cli::Tolerance tolerance = kTolerance;
  std::ifstream file(fs::path(test.folder) / "data.json");
  if (!file) return tolerance;
  std::stringstream text;
  text << file.rdbuf();
  const boost::json::value json = boost::json::parse(text.str());
  if (const auto* rtol = json.as_object().if_contains("rtol")) tolerance.rtol = rtol->to_number<double>();
  if (const auto* atol = json.as_object().if_contains("atol")) tolerance.atol = atol->to_number<double>();
  return tolerance;
}

Result<std::vector<engine::Value>> read_values(const Case& test, const char* prefix, const graph::Graph& graph,
                                               std::span<const graph::ValueId> declared) {
  std::vector<engine::Value> values;
  for (const graph::ValueId id : declared) {
    const fs::path path = fs::path(test.folder) / "test_data_set_0" / fmt::format("{}_{}.pb", prefix, values.size());
    if (!fs::exists(path)) break;
    const graph::Type& type = graph.value(id).type;
    SERIN_TRY(const formats::FileValue value, formats::read_value_file(path, type.kind));
    values.push_back(to_value(value, type.dtype));
  }
  return values;
}

}  // namespace

Result<std::vector<Case>> find_suite(const std::string& root) {
  const fs::path data = data_folder(root);
  if (data.empty()) return Error{Code::kNotFound, root + ": no onnx wheel is installed there; deploy/install-deps --tests does it"};
  std::vector<Case> cases;
  for (const char* set : kSets) {
    const size_t first = cases.size();
    for (const auto& entry : fs::directory_iterator(data / set))
      if (fs::exists(entry.path() / "model.onnx")) cases.push_back({set, entry.path().filename(), entry.path()});
    std::ranges::sort(cases.begin() + static_cast<std::ptrdiff_t>(first), cases.end(), {}, &Case::name);
  }
  return cases;
}

Result<TestData> read_test_data(const Case& test, const graph::Graph& graph) {
  TestData data;
  SERIN_TRY(data.inputs, read_values(test, "input", graph, graph.inputs()));
  SERIN_TRY(data.outputs, read_values(test, "output", graph, graph.outputs()));
  data.tolerance = tolerance_of(test);
  if (data.outputs.empty()) return Error{Code::kNotFound, "there are no expected outputs"};
  return data;
}

Result<LeftOut> read_left_out(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error{Code::kNotFound, path + ": cannot be opened"};
  LeftOut left_out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const size_t end = std::min(line.find(' '), line.size());
    const size_t reason = line.find_first_not_of(' ', end);
    if (reason == std::string::npos) return Error{Code::kCorrupt, fmt::format("{}: '{}' has no reason", path, line)};
    if (!left_out.emplace(line.substr(0, end), line.substr(reason)).second)
      return Error{Code::kCorrupt, fmt::format("{}: '{}' is listed twice", path, line.substr(0, end))};
  }
  return left_out;
}

Status write_left_out(const std::string& path, const std::map<std::string, std::string>& failing) {
  SERIN_TRY(const LeftOut known, read_left_out(path));
  std::string text;
  std::ifstream before(path);
  for (std::string line; std::getline(before, line) && line.starts_with('#');) text += line + "\n";
  for (const auto& [name, error] : failing) {
    const auto reason = known.find(name);
    text += fmt::format("{}  {}\n", name, reason == known.end() ? error : reason->second);
  }
  std::ofstream(path) << text;
  return {};
}

}  // namespace serin::conformance
