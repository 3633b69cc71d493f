// try_it.h: prints a first request to a model that can be pasted into a terminal: a line for curl and a few for tritonclient.
#pragma once

#include <string>

#include "runtime/serving/repository/version.h"

namespace serin::cli {

/// The server, and the credentials that its clients show. The lines read the credentials from $TOKEN, $CERT and $KEY. They do not verify
/// the server's certificate: it rarely comes from a public authority, and the file of its authority is not known here.
struct TriedServer {
  std::string url;  ///< "http://127.0.0.1:8000"
  bool token = false, certificate = false;
};

struct TryIt {
  std::string curl, python;
  std::string why_not;  ///< the reason if there are none
};

/// A shell line in which the user fills in the variables that the other lines read. Empty: there are no variables.
std::string to_fill_in(const TriedServer& server);

/// Runs the model on zeros to find sizes that it accepts if some are open. It stops at `until`, or when the program is asked to end. If no
/// sizes are found, both texts are empty and why_not is set. Do not call it on io threads.
TryIt try_it(serving::Version& version, const TriedServer& server, serving::Clock::time_point until);

}  // namespace serin::cli
