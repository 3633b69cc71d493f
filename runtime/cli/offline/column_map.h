// column_map.h: which columns of the data fill which inputs of the model.
#pragma once

#include <string>
#include <vector>

#include "runtime/datasets/dataset.h"
#include "runtime/steps/pipeline/step.h"

namespace serin::cli {

struct ColumnMap {
  std::vector<size_t> columns;              ///< of the data, in the order in which they are read
  std::vector<std::vector<size_t>> inputs;  ///< for each input, positions in `columns`
};

/// `given`: "input=column", "input=a,b,c", "input=pixel_*". Other inputs take the column of their name. A model with one input for texts or
/// pictures takes the only column of pictures. Errors name input, flag and the columns that there are.
Result<ColumnMap> map_columns(const datasets::Dataset& data, const std::vector<steps::TensorFacts>& inputs,
                              const std::vector<std::string>& given);

}  // namespace serin::cli
