#include "runtime/cli/release/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "runtime/base/config.h"
#include "runtime/base/file.h"
#include "runtime/cli/offline/eval_gate.h"
#include "runtime/cli/offline/eval_task.h"
#include "runtime/net/http.h"
#include "runtime/planner/fit.h"
#include "runtime/registry/versions.h"

namespace serin::cli {
namespace {

using config::Node;
using config::Problems;

constexpr size_t kLargestPolicy = 1 << 20, kMostRuntimes = 256;

/// "digits" is a number or `latest` for the registry, and no tag.
bool is_tag(const std::string& name) { return registry::is_name(name) && !registry::number_of(name) && name != "latest"; }

void read_tag(const Node& node, std::string& tag, Problems& problems) {
  if (problems.read(tag, node.text()) && !is_tag(tag))
    problems.add(node.error("must be a tag: 1 to 128 letters, digits, '.', '_' and '-', no number, and not 'latest'"));
}

void read_path(const Node& owner, std::string_view key, const std::filesystem::path& folder, std::string& path, Problems& problems) {
  const auto node = owner.find(key);
  if (!node || !problems.read(path, node->text())) return;
  if (path.empty()) return problems.add(node->error("must name a file or a folder"));
  path = (folder / path).lexically_normal().string();
}

void read_texts(const Node& owner, std::string_view key, std::vector<std::string>& texts, Problems& problems) {
  const auto list = owner.find(key);
  if (!list) return;
  if (!list->is_list()) return problems.add(list->error("must be a list"));
  for (const Node& item : list->items()) {
    std::string text;
    if (problems.read(text, item.text())) texts.push_back(std::move(text));
  }
}

/// What is wrong with it; URLs lose a last '/'.
std::optional<std::string> fault_of(Slot& slot) {
  if (!is_tag(slot.name)) return fmt::format("'{}' is no name: it is a tag of the registry, too", slot.name);
  if (slot.runtimes.empty() || slot.runtimes.size() > kMostRuntimes)
    return fmt::format("must have 'runtimes': 1 to {} URLs such as http://127.0.0.1:8000", kMostRuntimes);
  for (std::string& url : slot.runtimes) {
    const auto parsed = net::parse_url(url);
    if (!parsed || parsed->path != "/" || parsed->origin.secure) return fmt::format("runtime '{}' must be http://HOST:PORT", url);
    if (url.ends_with('/')) url.pop_back();
  }
  return std::nullopt;
}

Slot read_slot(const Node& node, std::string name, Problems& problems) {
  Slot slot{.name = std::move(name), .runtimes = {}};
  problems.allow_only(node, {"runtimes"});
  read_texts(node, "runtimes", slot.runtimes, problems);
  if (const auto fault = fault_of(slot)) problems.add(node.error(*fault));
  return slot;
}

void read_slots(const Node& document, const PolicyFlags& flags, ReleasePolicy& policy, Problems& problems) {
  policy.slots = flags.slots;
  const auto slots = document.at("slots");
  if (slots && !flags.slots.empty()) return problems.add(slots->error("are given with --slot, too"));
  if (!flags.slots.empty()) return;
  if (!slots) return flags.partial ? void() : problems.add(slots.error());
  const std::vector<std::string> names = slots->is_map() ? slots->keys() : std::vector<std::string>();
  if (names.size() != 2 || names[0] == names[1])
    return problems.add(slots->error("must be two slots: {blue: {runtimes: [URL]}, green: {runtimes: [URL]}}"));
  for (const std::string& name : names) {
    const auto node = slots->find(name);
    if (!node) {
      problems.add(slots->error(fmt::format("slot '{}' has no runtimes", name)));
      continue;
    }
    policy.slots.push_back(read_slot(*node, name, problems));
  }
}

/// What contradicts itself in the slots, wherever they were given.
void check_slots(const Node& document, const ReleasePolicy& policy, Problems& problems) {
  std::set<std::string> seen;
  for (const Slot& slot : policy.slots) {
    const auto slots = document.find("slots");
    const auto fault = [&](const std::string& text) {
      problems.add(slots ? slots->find(slot.name)->error(text) : invalid(fmt::format("--slot {}: {}", slot.name, text)));
    };
    if (slot.name == policy.production) fault("is also the tag of 'production': a slot needs a tag of its own");
    for (const std::string& url : slot.runtimes)
      if (!seen.insert(url).second) fault(fmt::format("runtime {} is named twice", url));
  }
}

void read_registry(const Node& document, const std::filesystem::path& folder, const PolicyFlags& flags, ReleasePolicy& policy,
                   Problems& problems) {
  read_path(document, "registry", folder, policy.registry, problems);
  if (flags.registry.empty()) {
    if (const auto given = document.at("registry"); !given && !flags.partial) problems.add(given.error());
    return;
  }
  if (const auto given = document.find("registry")) problems.add(given->error("is given with --registry, too"));
  policy.registry = flags.registry;
}

void read_check(const Node& node, const std::filesystem::path& folder, ReleasePolicy& policy, Problems& problems) {
  problems.allow_only(node, {"cases", "contract"});
  read_path(node, "cases", folder, policy.cases, problems);
  std::string contract = "same";
  if (const auto given = node.find("contract"); given && problems.read(contract, given->one_of({"same", "any"})))
    policy.same_contract = contract == "same";
}

void read_plan(const Node& node, ReleasePolicy& policy, Problems& problems) {
  constexpr int64_t kMostInstances = 1024;
  problems.allow_only(node, {"memory", "device", "instances"});
  if (const auto memory = node.find("memory");
      memory && problems.read(policy.memory, memory->text()) && !planner::parse_bytes(policy.memory))
    problems.add(memory->error("must be bytes, such as 512Mi or 16G"));
  problems.read(policy.device, node.text("device", ""));
  problems.read(policy.instances, node.integer("instances", 1, kMostInstances, 0));
  if (policy.instances > 0 && policy.memory.empty() && policy.device.empty())
    problems.add(node.error("'instances' needs 'memory' or 'device', which they must fit"));
}

EvalPolicy read_eval(const Node& node, const std::filesystem::path& folder, Problems& problems) {
  EvalPolicy eval;
  problems.allow_only(node, {"label", "output", "task", "metrics", "labels", "softmax", "slice", "map", "require", "noWorseBy",
                             "confidence", "training", "latency", "onError"});
  problems.read(eval.label, node.text("label", ""));
  problems.read(eval.output, node.text("output", ""));
  if (const auto task = node.find("task")) problems.read(eval.task, task->one_of(kEvalTasks));
  read_texts(node, "metrics", eval.metrics, problems);
  read_path(node, "labels", folder, eval.labels, problems);
  problems.read(eval.latency, node.boolean("latency", false));
  problems.read(eval.softmax, node.boolean("softmax", false));
  problems.read(eval.slice, node.text("slice", ""));
  read_texts(node, "map", eval.map, problems);
  read_path(node, "training", folder, eval.training, problems);
  read_texts(node, "require", eval.require, problems);
  for (const std::string& text : eval.require)
    if (!parse_requirement(text))
      problems.add(node.find("require")->error(fmt::format("'{}' must be METRIC >= NUMBER, or with >, <=, <", text)));
  if (const auto margin = node.find("noWorseBy");
      margin && problems.read(eval.no_worse_by, margin->text()) && !parse_margin(eval.no_worse_by))
    problems.add(margin->error("must be like 0.5pt (percentage points) or 0.005, and not negative"));
  if (problems.read(eval.confidence, node.fraction("confidence", eval.confidence)) && (eval.confidence < 0.5 || eval.confidence > 0.9999))
    problems.add(node.find("confidence")->error("must be from 50% to 99.99%"));
  std::string word;
  if (const auto on_error = node.find("onError"); on_error && problems.read(word, on_error->one_of({"stop", "skip"})))
    eval.skip_faults = word == "skip";
  return eval;
}

void read_notify(const Node& document, const std::filesystem::path& folder, ReleasePolicy& policy, Problems& problems) {
  const auto list = document.find("notify");
  if (!list) return;
  if (!list->is_list()) return problems.add(list->error("must be a list"));
  for (const Node& item : list->items()) {
    Receiver receiver;
    if (item.is_map()) {
      receiver.mail = read_mail(item, folder.string(), problems);
    } else if (problems.read(receiver.url, item.text())) {
      const bool is_path = receiver.url.find("://") == std::string::npos;
      if (is_path) receiver.url = (folder / receiver.url).lexically_normal().string();
      if (const auto url = notify_url(receiver.url); !url) problems.add(item.error(url.error().message));
    }
    policy.notify.push_back(std::move(receiver));
  }
}

/// The least time that the rollout takes.
std::chrono::nanoseconds fixed_time(const rollout::Spec& spec) {
  std::chrono::nanoseconds sum = spec.bake;
  for (const rollout::Step& step : spec.steps) sum += step.duration;
  return sum;
}

void read_durations(const Node& document, ReleasePolicy& policy, Problems& problems) {
  const auto positive = [&](const Node& node, std::chrono::nanoseconds& value) {
    if (problems.read(value, node.duration()) && value.count() <= 0) problems.add(node.error("must be above 0"));
  };
  if (const auto load = document.find("load")) {
    problems.allow_only(*load, {"timeout"});
    if (const auto timeout = load->find("timeout")) positive(*timeout, policy.load_timeout);
  }
  if (const auto timeout = document.find("timeout")) positive(*timeout, policy.timeout);
  if (const auto least = fixed_time(policy.parsed); least >= policy.timeout) {
    const std::string text = fmt::format("the steps of the rollout alone take {}, and 'timeout' is {}", config::print_duration(least),
                                         config::print_duration(policy.timeout));
    problems.add((document.has("timeout") ? *document.find("timeout") : *document.find("rollout")).error(text));
  }
}

/// A map as lines that can stand at the top of a document next to others.
std::string keys_as_document(const Node& map) {
  std::string text;
  for (const std::string& key : map.keys()) {
    const auto value = map.find(key);
    if (!value) continue;
    std::istringstream lines(value->yaml());
    text += key + ":\n";
    for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
  }
  return text;
}

}  // namespace

Result<Slot> parse_slot(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return invalid(fmt::format("--slot {}: must be NAME=http://HOST:PORT,...", text));
  Slot slot{.name = text.substr(0, equals), .runtimes = {}};
  for (size_t from = equals + 1; from <= text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    slot.runtimes.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  if (const auto fault = fault_of(slot)) return invalid(fmt::format("--slot {}: {}", text, *fault));
  return slot;
}

Result<ReleasePolicy> parse_policy(const std::string& text, const std::string& path, const PolicyFlags& flags) {
  SERIN_TRY(const Node document, Node::parse(text, path));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  Problems problems;
  ReleasePolicy policy{.text = text};
  problems.allow_only(document, {"kind", "registry", "model", "data", "production", "slots", "check", "plan", "eval", "load", "rollout",
                                 "timeout", "notify"});
  if (!document.is_map() && !document.is_null()) SERIN_CHECK(problems.first());
  std::string word;
  if (const auto kind = document.find("kind")) problems.read(word, kind->one_of({"Release"}));
  read_registry(document, folder, flags, policy, problems);
  read_path(document, "data", folder, policy.data, problems);
  if (const auto model = document.find("model"); model && problems.read(policy.model, model->text()) && !registry::is_name(policy.model))
    problems.add(model->error("must be a name in the registry: 1 to 128 letters, digits, '.', '_' and '-'"));
  if (const auto production = document.find("production")) read_tag(*production, policy.production, problems);
  read_slots(document, flags, policy, problems);
  check_slots(document, policy, problems);
  if (const auto check = document.find("check")) read_check(*check, folder, policy, problems);
  if (const auto plan = document.find("plan")) read_plan(*plan, policy, problems);
  if (const auto eval = document.find("eval")) policy.eval = read_eval(*eval, folder, problems);
  policy.parsed.steps = rollout::default_steps();
  if (const auto rules = document.find("rollout")) {
    policy.parsed = rollout::parse_rules(*rules, problems);
    policy.rules = keys_as_document(*rules);
  }
  read_durations(document, policy, problems);
  if (!flags.partial) read_notify(document, folder, policy, problems);
  SERIN_CHECK(problems.first());
  return policy;
}

Result<ReleasePolicy> read_policy(const std::string& path, const PolicyFlags& flags) {
  if (path.empty()) return parse_policy("", "command line", flags);
  SERIN_TRY(const std::string text, read_file(path, kLargestPolicy));
  return parse_policy(text, path, flags);
}

}  // namespace serin::cli
