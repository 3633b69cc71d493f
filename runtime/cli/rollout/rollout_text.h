// rollout_text.h: what `serin rollout` prints for people, from the JSON that the router sends.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

namespace serin::cli {

/// Several aligned lines: phase, weights, answers, evidence against its trip value, certificates.
std::string print_status(const boost::json::value& status);
/// One line for `watch`.
std::string print_status_line(const boost::json::value& status);
/// What a change of which makes `watch` print another line.
std::string watch_key(const boost::json::value& status);
/// The audit log, one line an entry, oldest first.
std::string print_history(const boost::json::value& history);
/// Whether no entry was changed or taken out, and the one with the digest `noted` (empty: none was) is still there; for people.
std::string verify_history(const std::string& body, const std::string& noted, bool& intact);
/// Why a rollout was decided as it was, decided once more from its record. `agrees`: both came to the same.
std::string explain_verdict(const std::string& body, bool& agrees);

}  // namespace serin::cli
