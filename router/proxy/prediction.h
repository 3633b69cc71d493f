// prediction.h: The class of each row of an answer, for a label that comes later (outcomes/predictions.h).
//
//   scores [[0.1, 0.9], [0.8, 0.2]], class: argmax                        rows 1, 0
//   labels ["cat", "dog"]                                                 rows cat, dog: a text is its own class
//   results [[["cat", 0.7], ["dog", 0.3]]] of TensorFlow's classify       rows cat: the text of the highest score
#pragma once

#include "router/config/config.h"
#include "router/outcomes/predictions.h"
#include "runtime/protocol/answers/answers.h"

namespace serin::router {

/// Of an answer with a good status. Each thread keeps its reader's memory.
Prediction read_prediction(const protocol::AnswerBody& answer, const LabelConfig& config);

}  // namespace serin::router
