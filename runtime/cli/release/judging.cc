#include "runtime/cli/release/judging.h"

#include <fmt/format.h>

#include "runtime/base/file.h"
#include "runtime/base/json_at.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/registry/provenance.h"
#include "runtime/cli/release/child.h"
#include "runtime/planner/units.h"
#include "runtime/registry/sha256.h"

namespace serin::cli {
namespace {

namespace json = boost::json;

constexpr size_t kLargestReport = 16 << 20;

Judged no(std::string text) { return {false, std::move(text), {}}; }

std::string bytes(double value) { return planner::short_bytes(static_cast<size_t>(value)); }

/// "top1 0.9963"
std::string first_metric(const json::value& report) {
  const json::value* metrics = json_at::find(report, "/metrics");
  if (!metrics || !metrics->is_object() || metrics->get_object().empty()) return "";
  const auto& first = *metrics->get_object().begin();
  return fmt::format("{} {:.4f}", std::string(first.key()), json_at::number(first.value(), "/value"));
}

}  // namespace

Result<Judged> judge_check(const ReleasePolicy& policy, const Candidate& candidate, const std::string& production_details,
                           const std::string& work) {
  const auto details = details_of(candidate.place.file);
  if (!details) return no("it cannot be read: " + details.error().message);
  if (policy.same_contract)
    if (const auto difference = contract_difference(*details, production_details))
      return no(*difference + " (check: {contract: any} permits it)");
  const bool stored = !policy.cases.empty();
  std::vector<std::string> arguments = {stored ? "check" : "bench", candidate.place.file};
  if (stored)
    arguments.push_back(policy.cases);
  else
    arguments.insert(arguments.end(), {"--seconds", "0.1"});
  arguments.emplace_back("--json");
  SERIN_TRY(const ChildEnd end, run_serin(arguments, work));
  boost::system::error_code error;
  const json::value said = json::parse(end.out, error);
  if (end.signal != 0) return no("the process that loaded it " + end.why());
  if (end.exit_code == kNo) return no(fmt::format("its answers to {} are not the stored ones", policy.cases));
  if (stored && end.exit_code == kUsage) return invalid(end.why());
  if (end.exit_code != kYes && !(end.exit_code == kUsage && !stored)) return no("it cannot run: " + end.why());
  Judged judged{.good = true, .text = {}, .facts = {{"details", json::parse(*details)}}};
  if (stored)
    judged.text = "it answers its stored cases as before";
  else if (end.exit_code == kYes && !error)
    judged.text = "it loads and runs";
  else
    judged.text = "it loads; not run, because sizes of its inputs are open";
  if (policy.same_contract && !production_details.empty()) judged.text += "; inputs and outputs are those of production";
  return judged;
}

Result<Judged> judge_plan(const ReleasePolicy& policy, const Candidate& candidate, const std::string& work) {
  std::vector<std::string> arguments = {"plan", candidate.place.file, "--json"};
  if (!policy.memory.empty()) arguments.insert(arguments.end(), {"--memory", policy.memory});
  if (!policy.device.empty()) arguments.insert(arguments.end(), {"--device", policy.device});
  if (policy.instances > 0) arguments.insert(arguments.end(), {"--instances", std::to_string(policy.instances)});
  SERIN_TRY(const ChildEnd end, run_serin(arguments, work));
  if (end.signal != 0) return no("the process that planned it " + end.why());
  if (end.exit_code == kUsage) return invalid(end.why());
  boost::system::error_code error;
  const json::value plan = json::parse(end.out, error);
  if (error || (end.exit_code != kYes && end.exit_code != kNo)) return no("it cannot be planned: " + end.why());
  Judged judged{.good = end.exit_code == kYes, .text = {}, .facts = {{"total_bytes", json_at::number(plan, "/process/total_bytes")}}};
  if (const json::value* fit = json_at::find(plan, "/placement/fit")) {
    const std::string needs = bytes(json_at::number(*fit, "/needs_bytes")), has = bytes(json_at::number(*fit, "/has_bytes"));
    judged.facts["fit"] = *fit;
    judged.text = judged.good ? fmt::format("it takes {} of {}", needs, has) : fmt::format("it needs {} and has {}", needs, has);
    if (const std::string advice = json_at::text(*fit, "/advice"); !judged.good && !advice.empty()) judged.text += "; " + advice;
  } else {
    judged.text =
        fmt::format("it takes {}; the policy names no memory that it must fit", bytes(json_at::number(plan, "/process/total_bytes")));
  }
  return judged;
}

std::vector<std::string> eval_arguments(const EvalPolicy& eval, const std::string& model, const std::string& data,
                                        const std::string& against, const std::string& out, const std::string& html) {
  std::vector<std::string> arguments = {"eval", model, data};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
  };
  const auto add_all = [&](const char* flag, const std::vector<std::string>& values) {
    for (const std::string& value : values) add(flag, value);
  };
  add("--label", eval.label);
  add("--output", eval.output);
  add("--task", eval.task);
  add_all("--metric", eval.metrics);
  add("--labels", eval.labels);
  add("--slice", eval.slice);
  add_all("--map", eval.map);
  add_all("--require", eval.require);
  add("--against", against);
  if (!against.empty()) add("--no-worse-by", eval.no_worse_by);
  add("--training", eval.training);
  add("--confidence", fmt::format("{}", eval.confidence));
  if (eval.latency) arguments.emplace_back("--latency");
  if (eval.softmax) arguments.emplace_back("--softmax");
  if (eval.skip_faults) add("--on-error", "skip");
  add("--out", out);
  add("--html", html);
  return arguments;
}

std::string eval_text(const std::string& text) {
  boost::system::error_code error;
  const json::value report = json::parse(text, error);
  if (error) return "its evaluation is not readable";
  std::string words = fmt::format("{} on {} rows", first_metric(report), json_at::number(report, "/rows"));
  if (const json::value* requirements = json_at::find(report, "/requirements"); requirements && requirements->is_array())
    for (const json::value& each : requirements->get_array())
      words += fmt::format("; {} {} ({:.4f})", json_at::is_true(each, "/holds") ? "holds" : "does not hold:", json_at::text(each, "/text"),
                           json_at::number(each, "/value"));
  if (const json::value* comparison = json_at::find(report, "/comparison"); comparison && json_at::is_true(*comparison, "/gate")) {
    const std::string verdict = json_at::text(*comparison, "/verdict");
    const std::string beyond = fmt::format("by more than {:g}", json_at::number(*comparison, "/margin"));
    const std::string change = fmt::format("{:+.4f} against production's {:.4f}, at least {:+.4f} with {:g} % confidence",
                                           json_at::number(*comparison, "/difference"), json_at::number(*comparison, "/old"),
                                           json_at::number(*comparison, "/low"), 100 * json_at::number(report, "/confidence"));
    if (verdict == "no worse")
      words += fmt::format("; not worse {} ({})", beyond, change);
    else if (verdict == "worse")
      words += fmt::format("; worse {} ({})", beyond, change);
    else
      words += fmt::format("; not shown to be no worse {} ({}): more rows would decide it", beyond, change);
  }
  return words;
}

Result<Judged> judge_eval(const EvalPolicy& eval, const std::string& model, const std::string& data, const std::string& against,
                          const std::string& work) {
  const std::string out = work + "/evaluation.json";
  SERIN_TRY(const ChildEnd end, run_serin(eval_arguments(eval, model, data, against, out, work + "/evaluation.html"), work));
  if (end.signal != 0) return no("the process that evaluated it " + end.why());
  if (end.exit_code != kYes && end.exit_code != kNo && end.exit_code != kInconclusive) return no("it cannot be evaluated: " + end.why());
  SERIN_TRY(const std::string report, read_file(out, kLargestReport));
  return Judged{.good = end.exit_code == kYes,
                .text = eval_text(report),
                .facts = {{"exit_code", end.exit_code}, {"sha256", registry::digest_of(report)}, {"report", report}}};
}

}  // namespace serin::cli
