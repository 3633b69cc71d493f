// suite.h: the ONNX backend tests as they lie in the onnx wheel, and the list of those that Serin leaves out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cli/tools/compare.h"
#include "runtime/engine/value.h"
#include "runtime/graph/graph.h"

namespace serin::conformance {

struct Case {
  std::string set;     ///< "node", "simple", "pytorch-converted", "pytorch-operator"
  std::string name;    ///< "test_abs"; unique among all sets
  std::string folder;  ///< model.onnx, test_data_set_0/{input,output}_<i>.pb
};

inline constexpr const char* kSets[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};

/// The cases of all sets, in order of set and name. `root`: a Python environment with the onnx wheel, or a folder that holds the sets.
Result<std::vector<Case>> find_suite(const std::string& root);

struct TestData {
  std::vector<engine::Value> inputs, outputs;
  cli::Tolerance tolerance;
};
Result<TestData> read_test_data(const Case& test, const graph::Graph& graph);

/// expected.txt: "name  reason" a line, blank lines and lines that begin with '#' aside.
using LeftOut = std::map<std::string, std::string>;
Result<LeftOut> read_left_out(const std::string& path);
/// Writes the names of `failing` with the reasons that the file has for them already, or else what failed. Its comments are kept.
Status write_left_out(const std::string& path, const std::map<std::string, std::string>& failing);

}  // namespace serin::conformance
