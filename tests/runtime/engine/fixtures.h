// fixtures.h: the models of tests/data and models/digits with the inputs and outputs that ONNX Runtime computed for them.
#pragma once

#include <string>
#include <vector>

#include "tests/runtime/engine/support.h"

namespace serin::engine::test {

struct Fixture {
  std::string name, model;             ///< "attention", the path of model.onnx
  std::vector<std::string> data_sets;  ///< folders with input_<i>.pb and output_<i>.pb
};

/// Every folder of tests/data that has a model, and models/digits; sorted by name.
std::vector<Fixture> fixtures();

/// input_0.pb, input_1.pb ... or output_...
std::vector<Tensor> read_tensors(const std::string& data_set, const std::string& kind);

}  // namespace serin::engine::test
