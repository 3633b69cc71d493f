// reshaping_scheduler.h: runs a model whose tensors have other shapes than clients use (tensor_reshape.h).
#pragma once

#include <memory>

#include "runtime/serving/scheduling/scheduler.h"
#include "runtime/serving/settings/tensor_reshape.h"

namespace serin::serving {

/// Accepts requests, and returns answers, in the clients' shapes.
std::shared_ptr<Scheduler> reshaping_over(std::shared_ptr<Scheduler> below, TensorReshapes reshapes);

}  // namespace serin::serving
