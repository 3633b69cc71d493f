// fake_dnn.h: A cuDNN for the emulated device, behind the interface of cudnn-frontend (headers/cudnn_frontend.h). It checks each graph and each run, and computes by
// plain loops over the tensors' strides.
//
// It refuses tensors without sizes or strides, sizes that contradict an operation, calls out of order, a plan that was not built or is deselected, an operand
// that is missing or not aligned to 16 bytes, and a stream of another device. Two threads that use a handle at the same time end the program, as does an address
// outside of the device's memory. Of its plans one uses tensor cores for floats, one wants too much memory, one cannot be built and one fails when it runs.
#pragma once

#include <cstdint>

namespace fake_dnn {

struct Rules {
  bool fuses = true;                ///< whether there are plans for graphs of more than one operation
  bool residual_first = true;       ///< whether there are plans for a residual that is added before the bias
  bool tensor_cores_alone = false;  ///< whether all plans use tensor cores
  int calls_before_failure = -1;    ///< after how many more calls one fails; negative: never
};
extern Rules rules;

extern uint64_t runs, refusals;  ///< of graphs, so far

}  // namespace fake_dnn
