// try_it.h: the first request to a model, ready to be pasted into a terminal: a line for curl and a few for tritonclient, each of which gets an answer.
#pragma once

#include <string>

#include "runtime/serving/version.h"

namespace serin::cli {

struct TryIt {
  std::string curl, python;
};

/// Runs the model on zeros to find sizes that it takes where some are open, for no longer than that, and not once the program is told to end. Both empty
/// where none was found. `url`: "http://127.0.0.1:8000"; `with_token`: the lines read one from $TOKEN. Not for io threads.
TryIt try_it(serving::Version& version, const std::string& url, bool with_token, serving::Clock::time_point until);

}  // namespace serin::cli
