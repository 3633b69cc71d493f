// example_json.h: writes an object of features, {"age": 3.5, "ids": [1, 2]}, as a serialized tf.Example, as TensorFlow Serving does.
//
// A number with a point or an exponent is a float, any other one an integer; true and false are integers; {"b64": ..} is bytes. All values of
// a feature have one kind. Internal to runtime/protocol.
#pragma once

#include <simdjson.h>

#include <string>

#include "runtime/base/result.h"

namespace serin::protocol {

/// Appends the message. `number_words`: the document is marked (json_words.h). `feature` receives the name of a feature that is refused.
Status append_example(std::string& out, const simdjson::dom::element& example, bool number_words, std::string* feature);

}  // namespace serin::protocol
