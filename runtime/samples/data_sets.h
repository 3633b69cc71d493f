// data_sets.h: reads stored inputs and outputs of a model, in the layout of ONNX's own test data.
//
//   DIR/test_data_set_0/input_0.pb  input_1.npy ...  output_0.pb ...
//
// DIR may also be one data set itself. A file of another ending, such as input_0.jpg or input_0.txt, is what a client sends to a model with
// steps: a tensor of texts with that one element.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/engine.h"

namespace serin::samples {

struct DataSet {
  std::string name;  ///< "test_data_set_0"
  std::string folder;
};

/// Returns the data sets in the order of their numbers. kNotFound if there is none.
Result<std::vector<DataSet>> find_data_sets(const std::string& folder);

/// Reads input_0, input_1, ... (or output_0, ...), each a .pb or .npy or an element, as many as exist. `infos` describes the type of each.
Result<std::vector<engine::Value>> read_values(const DataSet& set, const std::string& prefix, std::span<const engine::TensorInfo> infos);

}  // namespace serin::samples
