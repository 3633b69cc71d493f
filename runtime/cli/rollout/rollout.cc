// rollout.cc: `serin rollout`: one request to the router's admin API, or a few in a row for --wait and watch.
//
// Wrong flags are found here, before anything is sent (exit 2). When the router refuses a request, its message is printed (exit 1). --json
// prints the router's answer unchanged, so that pipelines read one format.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <optional>

#include "router/rollout/spec.h"
#include "router/store/store.h"
#include "runtime/base/config.h"
#include "runtime/base/file.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/rollout/admin_client.h"
#include "runtime/cli/rollout/live_text.h"
#include "runtime/cli/rollout/rollout_commands.h"
#include "runtime/cli/rollout/rollout_text.h"
#include "runtime/net/target.h"

namespace serin::cli {
namespace {

struct RolloutOptions {
  std::string action;  ///< start, status, watch, set-weight, pause, resume, promote, abort, undo, retry, outcomes, history, explain
  AdminFlags admin;
  std::string service;                                   ///< or, for explain, the ID of a rollout
  std::string canary, steps, spec_file, weight, reason;  ///< weights as text: they are exact, and refused if they are not
  size_t limit = 100;                                    ///< entries of history
  bool wait = false, json = false;
  bool verify = false;  ///< verify the digests of history
  std::string noted;    ///< a digest that history must still contain
};

namespace json = boost::json;

constexpr std::chrono::duration<double> kPoll{0.25};
constexpr std::chrono::seconds kPatience{30};  // with a router that has answered before
constexpr std::chrono::seconds kSilence{10};   // people are told at least so often that there is still something to wait for
constexpr size_t kLargestSpec = 1 << 20;

/// Ctrl-C, or a pipeline that is being ended.
struct Interrupted {};

std::string phase_of(const json::value& status) {
  const json::value& rollout = status.at("rollout");
  return rollout.is_null() ? "" : std::string(std::string_view(rollout.at("phase").as_string()));
}

bool is_over(const std::string& phase) { return phase == "Succeeded" || phase == "RolledBack"; }

int exit_code_of(const std::string& phase) { return phase == "Succeeded" ? kYes : phase == "RolledBack" ? kRolledBack : kInconclusive; }

/// "5,25,50" -> "steps: [5, 25, 50]\n", each checked.
std::string steps_line(const std::string& steps) {
  std::string line;
  size_t begin = 0;
  while (begin <= steps.size()) {
    const size_t end = std::min(steps.find(',', begin), steps.size());
    const auto weight = rollout::parse_weight(steps.substr(begin, end - begin));
    if (!weight) refuse(fmt::format("--steps {}: {}", steps, weight.error().message));
    line += fmt::format("{}{}", line.empty() ? "" : ", ", steps.substr(begin, end - begin));
    begin = end + 1;
  }
  return fmt::format("steps: [{}]\n", line);
}

std::string version_text(const config::Node& node) {
  const auto version = node.is_map() ? node.find("version") : node;
  const auto text = version ? version->text() : Result<std::string>(Error{});
  return text ? *text : "";
}

/// The document to send: the file's, with what the command line adds to it. The two must not contradict each other.
std::string read_document(const RolloutOptions& options) {
  if (options.canary.empty() && options.spec_file.empty()) refuse("name the version to roll out: --canary VERSION, or --spec FILE");
  std::string text, added;
  std::string name = "command line";
  if (!options.spec_file.empty()) {
    auto file = read_file(options.spec_file, kLargestSpec);
    if (!file) refuse(fmt::format("--spec {}", file.error().message));
    text = *std::move(file);
    name = options.spec_file;
  }
  const auto given = config::Node::parse(text, name);
  if (!given) refuse(given.error().message);
  const auto add = [&](const char* key, const std::string& value, const std::string& line) {
    if (value.empty()) return;
    const auto present = given->find(key);
    if (!present)
      added += line;
    else if (version_text(*present) != value)
      refuse(fmt::format("{}, but the command line says {}", present->error("is given there").message, value));
  };
  add("service", options.service, fmt::format("service: {}\n", json::serialize(json::value(options.service))));
  add("canary", options.canary, fmt::format("canary: {{version: {}}}\n", json::serialize(json::value(options.canary))));
  if (!options.steps.empty()) add("steps", options.steps, steps_line(options.steps));
  if (!added.empty() && !text.empty()) {
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first != std::string::npos && text[first] == '{')
      refuse(fmt::format("{}: name the service, the canary and the steps inside a JSON document", name));
    if (!text.ends_with('\n')) text += '\n';
  }
  text += added;
  const auto document = config::Node::parse(text, name);
  if (!document) refuse(document.error().message);
  if (const auto spec = rollout::parse_spec(*document); !spec) refuse(spec.error().message);
  return text;
}

void print(const RolloutOptions& options, const std::string& body, std::string (*for_people)(const json::value&)) {
  std::fputs(options.json ? body.c_str() : for_people(json::parse(body)).c_str(), stdout);
  std::fflush(stdout);
}

/// The router is asked again and again: one that is restarted meanwhile is no reason to give up.
std::string ask_patiently(const AdminClient& admin, const std::string& target, std::chrono::steady_clock::time_point& answered) {
  while (true) {
    try {
      std::string body = admin.get(target);
      answered = std::chrono::steady_clock::now();
      return body;
    } catch (const Failure& failure) {
      const bool asked_before = answered.time_since_epoch().count() > 0;
      if (failure.exit_code != kUnreachable || !asked_before || std::chrono::steady_clock::now() - answered > kPatience) throw;
      if (wait_for_end_signal(kPoll.count())) throw Interrupted{};
    }
  }
}

/// Follows one service until its rollout is over (or has become inconclusive, where somebody waits for a verdict): a picture that moves on a
/// terminal, else a line for each change.
int follow(const AdminClient& admin, const RolloutOptions& options, bool say_changes, bool until_inconclusive) {
  std::string last;
  std::chrono::steady_clock::time_point answered{};
  LiveText live;
  const bool redraw = say_changes && !options.json && LiveText::possible();
  auto said = std::chrono::steady_clock::now();
  while (true) {
    const std::string body = ask_patiently(admin, "/v1/rollouts/" + net::escaped(options.service), answered);
    const json::value status = json::parse(body);
    const std::string key = watch_key(status), phase = phase_of(status);
    const auto now = std::chrono::steady_clock::now();
    if (redraw) {
      live.show(print_status(status));
    } else if (say_changes && (key != last || (!options.json && now - said >= kSilence))) {
      std::fputs(options.json ? body.c_str() : (print_status_line(status) + "\n").c_str(), stdout);
      std::fflush(stdout);
      said = now;
    }
    last = key;
    if (is_over(phase) || (until_inconclusive && phase == "Inconclusive")) {
      if (!say_changes) print(options, body, print_status);
      return exit_code_of(phase);
    }
    if (wait_for_end_signal(kPoll.count())) throw Interrupted{};
  }
}

/// The verdict is the router's, whoever watches.
int leave(const RolloutOptions& options) {
  std::fprintf(stderr,
               "serin rollout %s: interrupted; the rollout of '%s' goes on without this command (watch it: serin rollout watch %s; end it: "
               "serin rollout abort %s)\n",
               options.action.c_str(), options.service.c_str(), options.service.c_str(), options.service.c_str());
  return kInterrupted;
}

int start(const AdminClient& admin, RolloutOptions options) {
  const std::string body = admin.post("/v1/rollouts", read_document(options));
  if (!options.wait) {
    print(options, body, print_status);
    return kYes;
  }
  options.service = json::parse(body).at("service").as_string();  // one of several rollouts at once has a name of its own
  return follow(admin, options, /*say_changes=*/!options.json, /*until_inconclusive=*/true);
}

/// The further rollouts of the service that are in progress.
std::string print_others(const AdminClient& admin, const std::string& service) {
  std::string text;
  const json::value all = json::parse(admin.get("/v1/rollouts"));
  for (const json::value& one : all.at("rollouts").as_array())
    if (one.at("service").as_string().starts_with(service + "~") && !is_over(phase_of(one))) text += "\n" + print_status(one);
  return text;
}

int status(const AdminClient& admin, const RolloutOptions& options) {
  if (!options.service.empty()) {
    print(options, admin.get("/v1/rollouts/" + net::escaped(options.service)), print_status);
    if (!options.json) std::fputs(print_others(admin, options.service).c_str(), stdout);
    return kYes;
  }
  print(options, admin.get("/v1/rollouts"), [](const json::value& all) {
    std::string text;
    for (const json::value& one : all.at("rollouts").as_array()) text += (text.empty() ? "" : "\n") + print_status(one);
    return text.empty() ? std::string("no rollout yet\n") : text;
  });
  return kYes;
}

int command(const AdminClient& admin, const RolloutOptions& options) {
  json::object body;
  if (!options.reason.empty()) body["reason"] = options.reason;
  if (options.action == "set-weight") {
    if (const auto ppm = rollout::parse_weight(options.weight); !ppm) refuse(ppm.error().message);
    body["weight"] = options.weight;
  }
  print(options, admin.post(fmt::format("/v1/rollouts/{}:{}", net::escaped(options.service), options.action), json::serialize(body)),
        print_status);
  return kYes;
}

int history(const AdminClient& admin, const RolloutOptions& options) {
  const bool verify = options.verify || !options.noted.empty();
  const size_t limit = verify ? store::kHistoryLimit : options.limit;
  const std::string body = admin.get(fmt::format("/v1/rollouts/{}/history?limit={}", net::escaped(options.service), limit));
  if (!verify) {
    print(options, body, print_history);
    return kYes;
  }
  bool intact = false;
  std::fputs(verify_history(body, options.noted, intact).c_str(), stdout);
  return intact ? kYes : kNo;
}

int outcomes(const AdminClient& admin, const RolloutOptions& options) {
  print(options, admin.get(fmt::format("/v1/services/{}/outcomes", net::escaped(options.service))), print_outcomes);
  return kYes;
}

int explain(const AdminClient& admin, const RolloutOptions& options) {
  const std::string body = admin.get("/v1/verdicts/" + net::escaped(options.service));
  bool agrees = true;
  const std::string lines = explain_verdict(body, agrees);
  std::fputs(options.json ? body.c_str() : lines.c_str(), stdout);
  return agrees ? kYes : kNo;
}

int dispatch(const RolloutOptions& options) {
  const AdminClient admin(options.admin);
  if (options.action == "start") return start(admin, options);
  if (options.action == "status") return status(admin, options);
  if (options.action == "watch") return follow(admin, options, /*say_changes=*/true, /*until_inconclusive=*/false);
  if (options.action == "history") return history(admin, options);
  if (options.action == "outcomes") return outcomes(admin, options);
  if (options.action == "explain") return explain(admin, options);
  return command(admin, options);
}

int run_rollout(const RolloutOptions& options) {
  if (options.wait) block_end_signals();  // follow() looks for them; a watch may just end
  try {
    return dispatch(options);
  } catch (const Interrupted&) {
    return leave(options);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "serin rollout %s: %s\n", options.action.c_str(), failure.message.c_str());
    return failure.exit_code;
  }
}

}  // namespace

void add_rollout(CLI::App& app, int& exit_code) {
  auto* group = app.add_subcommand("rollout", "Steer the router: start a rollout, watch it, pause, promote, abort");
  group->require_subcommand(1);
  auto options = std::make_shared<RolloutOptions>();
  const auto add = [&](const char* action, const char* what, bool service_required = true) {
    auto* command = group->add_subcommand(action, what);
    auto* service = command->add_option("service", options->service, "service in router.yaml");
    if (service_required) service->required();
    add_admin_flags(*command, options->admin);
    command->add_flag("--json", options->json, "print the router's answer as JSON");
    command->callback([options, &exit_code, action] {
      options->action = action;
      exit_code = run_rollout(*options);
    });
    return command;
  };
  const auto add_reason = [&](CLI::App* command) { command->add_option("--reason", options->reason, "a sentence for the audit log"); };

  auto* start = add("start", "Begin a rollout; with --wait: 0 promoted, 3 rolled back, 4 inconclusive");
  start->add_option("--canary", options->canary, "version to roll out");
  start->add_option("--steps", options->steps, "weights in percent, each until certified, e.g. 5,25,50,100");
  start->add_option("--spec", options->spec_file, "document of kind Rollout, YAML or JSON");
  start->add_flag("--wait", options->wait, "wait until the verdict");
  add("status", "Print the status of a rollout; without a service: of all rollouts", /*service_required=*/false);
  add("watch", "Print a line for every change until the verdict");
  auto* set_weight = add("set-weight", "Give the canary this share of traffic and pause the steps");
  set_weight->add_option("percent", options->weight, "0 to 100, at most four decimals")->required();
  add_reason(set_weight);
  add_reason(add("pause", "Keep the weight unchanged"));
  add_reason(add("resume", "Continue with the steps, or pass a manual gate"));
  add_reason(add("promote", "Give the canary all traffic now, without further evidence"));
  add_reason(add("abort", "Give stable all traffic now"));
  add_reason(add("undo", "After a promotion: give all traffic back to the version that was stable before"));
  add_reason(add("retry", "Start the last rollout again, with the same specification"));
  add("outcomes", "Print which version is better by the outcomes that were reported for a service");
  add("explain", "Explain the verdict of a rollout (its ID, or a service's last one), and decide it again from the record");
  auto* history = add("history", "Print the audit log");
  history->add_option("--limit", options->limit, "entries")->capture_default_str()->check(CLI::Range(1, 10'000));
  history->add_flag("--verify", options->verify, "verify that no entry was changed or removed; exit code 1: print the first bad one");
  history->add_option("--noted", options->noted, "with --verify: a digest that was noted earlier and must still be there");
  add_apply(*group, exit_code);
  add_rollout_files(*group, exit_code);
  add_simulate(*group, exit_code);
  add_drill(*group, exit_code);
  add_schema(*group, exit_code);
}

}  // namespace serin::cli
