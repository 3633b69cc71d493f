// rollout_apply.cc: `serin rollout apply` and `diff`: a file says what is wanted, and the router says whether that is new.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <memory>
#include <sstream>
#include <vector>

#include "router/rollout/spec.h"
#include "runtime/base/config.h"
#include "runtime/base/file.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/rollout/admin_client.h"
#include "runtime/cli/rollout/rollout_commands.h"
#include "runtime/net/target.h"

namespace serin::cli {
namespace {

namespace json = boost::json;

constexpr size_t kLargestApplied = 1 << 20;
constexpr size_t kContext = 3;                  // lines around a change
constexpr int kDifferent = 1, kDiffFailed = 2;  // as diff(1) and `kubectl diff` say it

struct ApplyOptions {
  AdminFlags admin;
  std::string file;
  bool json = false, dry_run = false;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The lines of both, each with ' ', '-' or '+' before it: a longest common subsequence.
std::vector<std::string> merged(const std::vector<std::string>& old, const std::vector<std::string>& now) {
  const size_t width = now.size() + 1;
  std::vector<size_t> common((old.size() + 1) * width);  // of the ends from (i, j) on
  for (size_t i = old.size(); i-- > 0;)
    for (size_t j = now.size(); j-- > 0;)
      common[i * width + j] =
          old[i] == now[j] ? common[(i + 1) * width + j + 1] + 1 : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
  std::vector<std::string> all;
  size_t i = 0, j = 0;
  while (i < old.size() || j < now.size()) {
    if (i < old.size() && j < now.size() && old[i] == now[j]) {
      all.push_back(" " + old[i++]);
      ++j;
    } else if (j == now.size() || (i < old.size() && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      all.push_back("-" + old[i++]);
    } else {
      all.push_back("+" + now[j++]);
    }
  }
  return all;
}

/// Changes with a few lines around them; empty: the texts are equal.
std::string print_diff(const std::string& current, const std::string& wanted) {
  if (current == wanted) return "";
  const std::vector<std::string> all = merged(lines_of(current), lines_of(wanted));
  std::string text = "--- current\n+++ wanted\n";
  for (size_t at = 0; at < all.size(); ++at) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at < kContext ? 0 : at - kContext);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), at + kContext + 1));
    if (std::any_of(begin, end, [](const std::string& line) { return line.front() != ' '; })) text += all[at] + "\n";
  }
  return text;
}

/// The file as it is sent, and the service that it is about.
std::pair<std::string, std::string> read_rollout_file(const std::string& path) {
  auto text = read_file_or_pipe(path, kLargestApplied);
  if (!text) refuse(text.error().message);
  const auto document = config::Node::parse(*text, path);
  if (!document) refuse(document.error().message);
  const auto spec = rollout::parse_spec(*document);
  if (!spec) refuse(spec.error().message);
  return {*std::move(text), spec->service};
}

int apply(const ApplyOptions& options) {
  const AdminClient admin(options.admin);
  const auto [text, service] = read_rollout_file(options.file);
  const std::string body = admin.put(fmt::format("/v1/rollouts/{}{}", net::escaped(service), options.dry_run ? "?dry_run=true" : ""), text);
  const json::value answer = json::parse(body);
  const std::string_view action = answer.at("action").as_string();
  if (options.json) {
    std::fputs(body.c_str(), stdout);
  } else {
    const std::string_view note =
        answer.at("specification_differs").as_bool() ? "; its rules differ from the file (serin rollout diff)" : "";
    fmt::print("{}: {}: {}{}\n", service, action, std::string_view(answer.at("message").as_string()), note);
  }
  std::fflush(stdout);
  return action == "blocked" ? kRolledBack : kYes;
}

int diff(const ApplyOptions& options) {
  const AdminClient admin(options.admin);
  const auto [text, service] = read_rollout_file(options.file);
  const std::string body = admin.put(fmt::format("/v1/rollouts/{}?dry_run=true", net::escaped(service)), text);
  const json::value answer = json::parse(body);
  const std::string_view current = answer.at("current").as_string(), wanted = answer.at("wanted").as_string();
  const std::string changes = print_diff(std::string(current), std::string(wanted));
  if (options.json)
    std::fputs(body.c_str(), stdout);
  else
    fmt::print("{}# {}: {}\n", changes, std::string_view(answer.at("action").as_string()),
               std::string_view(answer.at("message").as_string()));
  std::fflush(stdout);
  return changes.empty() ? kYes : kDifferent;
}

template <class Run>
int run(const char* name, int on_failure, const Run& command) {
  try {
    return command();
  } catch (const Failure& failure) {
    fmt::print(stderr, "serin rollout {}: {}\n", name, failure.message);
    return on_failure == 0 ? failure.exit_code : on_failure;
  }
}

}  // namespace

void add_apply(CLI::App& group, int& exit_code) {
  auto options = std::make_shared<ApplyOptions>();
  const auto add = [&](const char* name, const char* what) {
    auto* command = group.add_subcommand(name, what);
    command->add_option("file", options->file, "document of kind Rollout, YAML or JSON; /dev/stdin reads a pipe")->required();
    add_admin_flags(*command, options->admin);
    command->add_flag("--json", options->json, "print the router's answer as JSON");
    return command;
  };
  auto* applied = add("apply", "Begin the rollout of a file unless that was done before; 3: its canary was rolled back, and stays so");
  applied->add_flag("--dry-run", options->dry_run, "change nothing");
  applied->callback([options, &exit_code] { exit_code = run("apply", 0, [&] { return apply(*options); }); });
  add("diff", "Compare a file with the rollout that runs or ran; 0: equal, 1: different, 2: an error")->callback([options, &exit_code] {
    exit_code = run("diff", kDiffFailed, [&] { return diff(*options); });
  });
}

}  // namespace serin::cli
