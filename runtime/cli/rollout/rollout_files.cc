// rollout_files.cc: the actions of `serin rollout` that work on files alone: validate, import, schema. They call no router.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <memory>

#include "router/import/import.h"
#include "router/rollout/spec.h"
#include "runtime/base/config.h"
#include "runtime/base/file.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/rollout/rollout_commands.h"
#include "runtime/net/http.h"

namespace serin::cli {
namespace {

struct ValidateOptions {
  std::vector<std::string> files;
  bool json = false;
};

struct ImportOptions {
  std::string file, service, canary;  ///< names: empty if the file contains them
};

constexpr size_t kLargestFile = 1 << 20;

/// "FILE:4:7: MESSAGE" -> {"file", "line", "column", "message"}
std::string problem_json(const std::string& file, std::string_view text) {
  int line = 0, column = 0;
  if (text.starts_with(file + ":")) {
    const char* const end = text.data() + text.size();
    const auto after_line = std::from_chars(text.data() + file.size() + 1, end, line);
    if (line > 0 && after_line.ptr != end) {
      const auto after_column = std::from_chars(after_line.ptr + 1, end, column);
      text = std::string_view(after_column.ptr, end);
      text.remove_prefix(std::min<size_t>(2, text.size()));
    }
  }
  return fmt::format(R"({{"file":{},"line":{},"column":{},"message":{}}})", net::json_quote(file), line, column, net::json_quote(text));
}

std::vector<Error> problems_of(const std::string& file, const std::string& text) {
  const auto document = config::Node::parse(text, file);
  if (!document) return {document.error()};
  config::Problems problems;
  (void)rollout::parse_spec(*document, problems);
  return problems.all();
}

int run_validate(const ValidateOptions& options) {
  std::string list;
  for (const std::string& file : options.files) {
    const auto text = read_file(file, kLargestFile);
    if (!text) {
      std::fprintf(stderr, "serin rollout validate: %s\n", text.error().message.c_str());
      return kUsage;
    }
    for (const Error& problem : problems_of(file, *text)) {
      if (!options.json) std::fprintf(stderr, "%s\n", problem.message.c_str());
      list += (list.empty() ? "" : ",") + problem_json(file, problem.message);
    }
  }
  if (options.json) std::printf("{\"valid\":%s,\"problems\":[%s]}\n", list.empty() ? "true" : "false", list.c_str());
  return list.empty() ? kYes : kNo;
}

int run_import(const ImportOptions& options) {
  const auto refuse = [](const Error& error) {
    std::fprintf(stderr, "serin rollout import: %s\n", error.message.c_str());
    return kUsage;
  };
  const auto text = read_file(options.file, kLargestFile);
  if (!text) return refuse(text.error());
  const auto documents = config::Node::parse_all(*text, options.file);
  if (!documents) return refuse(documents.error());
  const auto import = imports::import_rollout(*documents, {.service = options.service, .canary = options.canary});
  if (!import) return refuse(import.error());
  std::fputs(import->yaml.c_str(), stdout);
  for (const std::string& lost : import->lost) std::fprintf(stderr, "not carried over: %s\n", lost.c_str());
  return kYes;
}

int run_schema() {
  const std::string_view schema = rollout::spec_schema();
  std::fwrite(schema.data(), 1, schema.size(), stdout);
  return kYes;
}

}  // namespace

void add_rollout_files(CLI::App& group, int& exit_code) {
  auto* validate = group.add_subcommand("validate", "List all faults of specifications with their lines; exit code 0: none, 1: some");
  auto checked = std::make_shared<ValidateOptions>();
  validate->add_option("files", checked->files, "documents of kind Rollout, YAML or JSON")->required();
  validate->add_flag("--json", checked->json, "print one JSON object");
  validate->callback([checked, &exit_code] { exit_code = run_validate(*checked); });

  auto* import =
      group.add_subcommand("import", "Convert a rollout of Argo, Flagger, KServe or Seldon to Serin's; print the losses on standard error");
  auto imported = std::make_shared<ImportOptions>();
  import->add_option("file", imported->file, "manifests, with the templates that they refer to")->required();
  import->add_option("--service", imported->service, "service in router.yaml; default: the name in the file");
  import->add_option("--canary", imported->canary, "version to roll out; default: the version in the file");
  import->callback([imported, &exit_code] { exit_code = run_import(*imported); });
}

void add_schema(CLI::App& group, int& exit_code) {
  group.add_subcommand("schema", "Print the JSON schema of specifications, for editors")->callback([&exit_code] {
    exit_code = run_schema();
  });
}

}  // namespace serin::cli
