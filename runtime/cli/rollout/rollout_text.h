// rollout_text.h: prints the router's JSON as text for the users of `serin rollout`.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

namespace serin::cli {

/// Prints several aligned lines: phase, weights, answers, evidence against its trip value, certificates.
std::string print_status(const boost::json::value& status);
/// Prints one line for `watch`.
std::string print_status_line(const boost::json::value& status);
/// Returns the parts of the status; when they change, `watch` prints another line.
std::string watch_key(const boost::json::value& status);
/// Prints the audit log, one line for each entry, oldest first.
std::string print_history(const boost::json::value& history);
/// Reports whether no entry was changed or removed, and whether the entry with the digest `noted` (empty: none) is still there.
std::string verify_history(const std::string& body, const std::string& noted, bool& intact);
/// Prints a table for each metric of a service: versions, differences, verdict.
std::string print_outcomes(const boost::json::value& outcomes);
/// Decides a rollout again from its record and explains the verdict. `agrees`: both decisions are the same.
std::string explain_verdict(const std::string& body, bool& agrees);

}  // namespace serin::cli
