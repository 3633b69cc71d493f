// try_it.h: the first request to a model, ready to be pasted into a terminal: a line for curl and a few for tritonclient, each of which gets an answer.
#pragma once

#include <string>

#include "runtime/serving/repository/version.h"

namespace serin::cli {

/// Who is asked, and what clients show there. The lines read the latter from $TOKEN, $CERT and $KEY, and do not ask who signed the server's own certificate:
/// it is rarely a public authority, and which of the reader's files has it is not known here.
struct TriedServer {
  std::string url;  ///< "http://127.0.0.1:8000"
  bool token = false, certificate = false;
};

struct TryIt {
  std::string curl, python;
  std::string why_not;  ///< where there are none
};

/// A line for the shell in which the reader fills in what the others read. Empty: they read nothing.
std::string to_fill_in(const TriedServer& server);

/// Runs the model on zeros to find sizes that it takes where some are open, for no longer than that, and not once the program is told to end. Both empty
/// where none was found, and why not. Not for io threads.
TryIt try_it(serving::Version& version, const TriedServer& server, serving::Clock::time_point until);

}  // namespace serin::cli
