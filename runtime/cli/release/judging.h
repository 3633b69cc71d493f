// judging.h: what a model must show before anybody is served by it: it runs, it fits, and its answers are right. Each question is a command of
// this program in a process of its own.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "runtime/base/result.h"
#include "runtime/cli/release/candidate.h"
#include "runtime/cli/release/policy.h"

namespace serin::cli {

struct Judged {
  bool good = false;
  std::string text;  ///< a sentence: what was found, or why it is not good
  boost::json::object facts;
};

/// Runs the model on the cases of the policy, or on made-up inputs, and compares its inputs and outputs with those of production
/// (details_of(); empty: there is none).
Result<Judged> judge_check(const ReleasePolicy& policy, const Candidate& candidate, const std::string& production_details,
                           const std::string& work);
/// Plans its memory, and whether that fits.
Result<Judged> judge_plan(const ReleasePolicy& policy, const Candidate& candidate, const std::string& work);

/// The flags of `serin eval` for a policy. `against`: a model; empty: none. `out`, `html`: files for the report, or empty.
std::vector<std::string> eval_arguments(const EvalPolicy& eval, const std::string& model, const std::string& data,
                                        const std::string& against, const std::string& out, const std::string& html);
/// Evaluates it against production. The facts have the report's text and digest; the report is `work`/evaluation.json, with a page next to it.
Result<Judged> judge_eval(const EvalPolicy& eval, const std::string& model, const std::string& data, const std::string& against,
                          const std::string& work);
/// The verdict of an evaluation in words.
std::string eval_text(const std::string& report);

}  // namespace serin::cli
