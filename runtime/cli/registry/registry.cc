// registry.cc: `serin registry`: versions of models, their tags, their origin and the record of changes (runtime/registry).
//
// A model that Serin cannot read, and settings with an unknown key, are refused here and not where they are deployed.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>

#include "runtime/base/cache_folder.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/registry/provenance.h"
#include "runtime/cli/registry/registry_text.h"
#include "runtime/cli/tls_flags.h"
#include "runtime/registry/mlflow_registry.h"
#include "runtime/registry/registry.h"
#include "runtime/registry/remote_address.h"
#include "runtime/serving/settings/settings.h"

namespace serin::cli {
namespace {

namespace json = boost::json;
using registry::Reference;
using registry::Registry;
using registry::Version;

struct RegistryOptions {
  std::string folder, name, path, tag, reason, by, settings, cache;
  TlsFlags tls;
  std::vector<std::string> tags, origin;
  uint64_t version = 0;  ///< 0: the next
  int days = 30;
  bool remove = false, json = false;
};

enum class Place : uint8_t { kLocal, kAny };  ///< of a registry that an action accepts

/// A registry to read: the folder, or the mirror of a remote one, which is asked now.
struct Source {
  Registry registry;
  std::shared_ptr<registry::Remote> remote;
};

Result<std::shared_ptr<registry::Remote>> remote_of(const RegistryOptions& options, const std::string& address) {
  const std::string cache = options.cache.empty() && !cache_folder().empty() ? cache_folder() + "/models" : options.cache;
  if (cache.empty()) return invalid("there is no folder for what is downloaded: give one with --registry-cache");
  SERIN_TRY(const net::TlsClientOptions tls, client_options_of(options.tls));
  SERIN_TRY(auto remote, registry::open_remote(address, cache, tls));
  return remote;
}

/// No reference: all models.
Result<Source> open_source(const RegistryOptions& options, const std::optional<Reference>& reference) {
  if (!registry::is_remote_address(options.folder)) return Source{Registry(options.folder), nullptr};
  SERIN_TRY(auto remote, remote_of(options, options.folder));
  if (reference)
    SERIN_CHECK(remote->refresh(*reference));
  else
    SERIN_CHECK(remote->refresh_all());
  return Source{Registry(remote->mirror()), remote};
}

/// Of MLflow, `models:/NAME@ALIAS` names a registry and a version at once; an argument that follows it is the next one.
Status split_model_uri(RegistryOptions& options, std::string* next) {
  if (options.folder.starts_with(registry::kModels) && options.folder != registry::kModels) {
    SERIN_TRY(const Reference reference, registry::parse_model_uri(options.folder));
    if (!options.name.empty() && (!next || !next->empty())) return invalid(options.folder + " names the version already");
    if (next) *next = std::move(options.name);
    options.name = reference.str();
    options.folder = registry::kModels;
  }
  if (options.name.empty()) return invalid("version is required");
  return next && next->empty() ? invalid("into is required") : Status();
}

/// For what changes a registry, or reads more of it than a server of files is asked for.
Status only_local(const RegistryOptions& options) {
  if (!registry::is_remote_address(options.folder)) return {};
  return invalid(options.folder + ": a remote registry can be read with list, show and pull, and pushed to; do this where its folder is");
}

void print(const json::value& value) { fmt::print("{}\n", json::serialize(value)); }

Status add(const RegistryOptions& options) {
  registry::Addition addition{.model = options.path, .settings = options.settings};
  SERIN_TRY(addition.origin, origin_of(options.origin));
  SERIN_TRY(addition.details, details_of(options.path));
  if (!options.settings.empty()) SERIN_CHECK(serving::read_model_settings(options.settings));
  if (options.version > 0) addition.number = options.version;
  Registry registry(options.folder);
  SERIN_TRY(const registry::Added added, registry.add(options.name, addition, options.by));
  const std::string name = fmt::format("{}:{}", options.name, added.version.number);
  for (const std::string& tag : options.tags) SERIN_CHECK(registry.tag({options.name, added.version.digest}, tag, options.by));
  if (options.json) {
    json::object object = json_of(options.name, added.version);
    object["existed"] = added.existed;
    print(object);
  } else {
    fmt::print("{} {} {}\n", name, added.existed ? "has these contents already:" : "added:", added.version.digest);
  }
  return {};
}

Status list(const RegistryOptions& options) {
  SERIN_TRY(const Source source, open_source(options, options.name.empty() ? std::nullopt : std::optional(Reference{options.name, ""})));
  const Registry& registry = source.registry;
  std::vector<std::string> models{options.name};
  if (options.name.empty()) {
    SERIN_TRY(models, source.remote ? source.remote->models() : registry.models());
  }
  json::array all;
  for (const std::string& model : models) {
    SERIN_TRY(const std::vector<Version> versions, registry.versions(model));
    if (!options.json) fmt::print("{}\n", model);
    for (const Version& version : versions) {
      if (options.json)
        all.push_back(json_of(model, version));
      else
        fmt::print("{}\n", line_of(version));
    }
  }
  if (options.json) print(all);
  return {};
}

Status show(const RegistryOptions& given) {
  RegistryOptions options = given;
  SERIN_CHECK(split_model_uri(options, nullptr));
  SERIN_TRY(const Reference reference, Reference::parse(options.name));
  SERIN_TRY(const Source source, open_source(options, reference));
  SERIN_TRY(const Version version, source.registry.find(reference));
  if (options.json)
    print(json_of(reference.model, version));
  else
    fmt::print("{}", describe(reference.model, version));
  return {};
}

Status tag(const RegistryOptions& options) {
  SERIN_TRY(const Reference reference, Reference::parse(options.name));
  Registry registry(options.folder);
  if (options.remove) return registry.untag(reference.model, options.tag, options.by);
  SERIN_CHECK(registry.tag(reference, options.tag, options.by));
  SERIN_TRY(const Version version, registry.find(reference));
  fmt::print("{}:{} is {}:{}\n", reference.model, options.tag, reference.model, version.number);
  return {};
}

Status retire(const RegistryOptions& options) {
  SERIN_TRY(const Reference reference, Reference::parse(options.name));
  return Registry(options.folder).retire(reference, options.reason, options.by);
}

Status attach(const RegistryOptions& options) {
  SERIN_TRY(const Reference reference, Reference::parse(options.name));
  return Registry(options.folder).attach(reference, options.path, options.by);
}

Status pull(const RegistryOptions& given) {
  RegistryOptions options = given;
  SERIN_CHECK(split_model_uri(options, &options.path));
  SERIN_TRY(const Reference reference, Reference::parse(options.name));
  SERIN_TRY(const Source source, open_source(options, reference));
  if (source.remote) {
    SERIN_TRY(const Version wanted, source.registry.find(reference));
    if (!wanted.retired || reference.version == wanted.digest) SERIN_CHECK(source.remote->fetch(reference.model, wanted));
  }
  SERIN_TRY(const registry::Pulled pulled, source.registry.pull(reference, options.path));
  if (options.json) {
    json::object object = json_of(reference.model, pulled.version);
    object["folder"] = pulled.folder;
    object["existed"] = pulled.existed;
    print(object);
  } else {
    fmt::print("{}{}\n", pulled.folder, pulled.existed ? " was there already" : "");
  }
  return {};
}

Status push(const RegistryOptions& options) {
  SERIN_TRY(const Reference reference, Reference::parse(options.name));
  if (!registry::is_remote_address(options.path))
    return invalid(options.path + " is not s3://BUCKET[/PREFIX]; to a folder, copy the registry's");
  SERIN_TRY(const auto remote, remote_of(options, options.path));
  SERIN_TRY(const registry::Pushed pushed, remote->push(options.folder, reference, options.by));
  const Version& version = pushed.version;
  if (options.json) {
    json::object object = json_of(reference.model, version);
    object["existed"] = pushed.existed;
    print(object);
  } else {
    fmt::print("{}/{}:{} {} {}\n", options.path, reference.model, version.number,
               pushed.existed ? "was there already:" : "pushed:", version.digest);
  }
  return {};
}

Status history(const RegistryOptions& options) {
  SERIN_TRY(const std::vector<registry::Change> changes, Registry(options.folder).history(options.name));
  json::array all;
  for (const registry::Change& change : changes) {
    if (options.json)
      all.push_back(
          {{"at", change.at}, {"by", change.by}, {"event", change.event}, {"version", change.version}, {"detail", change.detail}});
    else
      fmt::print("{}  {:<8} {:>4}  {}  ({})\n", change.at, change.event, change.version, change.detail, change.by);
  }
  if (options.json) print(all);
  return {};
}

Status collect(const RegistryOptions& options) {
  Registry registry(options.folder);
  SERIN_TRY(std::vector<std::string> models, registry.models());
  if (!options.name.empty()) models = {options.name};
  for (const std::string& model : models) {
    SERIN_TRY(const registry::Collected done, registry.gc(model, options.days, options.by));
    for (const std::string& version : done.versions) fmt::print("{}:{} removed\n", model, version);
    fmt::print("{}: {} blobs, {} bytes freed\n", model, done.blobs, done.bytes);
  }
  return {};
}

/// kNo where a problem was found.
int verify(const RegistryOptions& options) {
  const Registry registry(options.folder);
  const Status local = only_local(options);
  auto models = !local                 ? Result<std::vector<std::string>>(local.error())
                : options.name.empty() ? registry.models()
                                       : Result<std::vector<std::string>>(std::vector{options.name});
  Status status = models ? Status() : Status(models.error());
  size_t found = 0;
  for (size_t i = 0; status && i < models->size(); ++i) {
    const auto problems = registry.verify((*models)[i]);
    if (!problems) {
      status = problems.error();
      break;
    }
    for (const std::string& problem : *problems) std::fprintf(stderr, "%s\n", problem.c_str());
    found += problems->size();
    if (problems->empty()) fmt::print("{}: all digests and the history agree\n", (*models)[i]);
  }
  if (status) return found == 0 ? kYes : kNo;
  std::fprintf(stderr, "serin registry verify: %s\n", status.error().message.c_str());
  return status.error().code == Code::kInvalidArgument ? kUsage : kCannotRun;
}

}  // namespace

void add_registry(CLI::App& app, int& exit_code) {
  auto* registry =
      app.add_subcommand("registry", "Keep versions of models in a folder, with tags, origin, reports and a record of changes");
  registry->require_subcommand(1);
  const auto action = [&](const char* name, const char* help, std::function<int(const RegistryOptions&)> run) {
    auto* command = registry->add_subcommand(name, help);
    auto options = std::make_shared<RegistryOptions>();
    options->by = user_and_host();
    command
        ->add_option("registry", options->folder,
                     "folder of the registry; for list, show and pull also s3://BUCKET/PREFIX, oci://HOST/PATH or "
                     "registry+https://HOST/PATH; for show "
                     "and pull also models:/NAME@ALIAS of MLflow")
        ->required();
    command->callback([options, run = std::move(run), &exit_code] { exit_code = run(*options); });
    return std::pair(command, options.get());
  };
  const auto reported = [](const char* name, Status (*run)(const RegistryOptions&), Place place = Place::kLocal) {
    return [name, run, place](const RegistryOptions& options) -> int {
      Status done = place == Place::kLocal ? only_local(options) : Status();
      if (done) done = run(options);
      if (done) return kYes;
      std::fprintf(stderr, "serin registry %s: %s\n", name, done.error().message.c_str());
      return done.error().code == Code::kInvalidArgument ? kUsage : kCannotRun;
    };
  };
  const auto who = [](CLI::App* command, RegistryOptions* options) {
    command->add_option("--by", options->by, "person or program that the record names; default: the user and the machine");
  };
  const auto which = [](CLI::App* command, RegistryOptions* options, bool required = true) {
    command->add_option("version", options->name, "MODEL (its newest version), MODEL:3, MODEL:production or MODEL@sha256:...")
        ->required(required);
  };
  const auto as_json = [](CLI::App* command, RegistryOptions* options) {
    command->add_flag("--json", options->json, "print one JSON document");
  };

  const auto [adding, added] = action("add", "Add a model as a new version", reported("add", add));
  adding->add_option("model", added->name, "name of the model")->required();
  adding->add_option("files", added->path, "file of the model, or folder of its files")->required();
  adding->add_option("--version", added->version, "number of the version; default: the next")->check(CLI::PositiveNumber);
  adding->add_option("--tag", added->tags, "also give it this tag; can be given several times")->allow_extra_args(false);
  adding->add_option("--origin", added->origin, "KEY=VALUE to remember, such as commit=4f2c or data=sha256:...; can be given several times")
      ->allow_extra_args(false);
  adding->add_option("--settings", added->settings, "serin.yaml to serve it with");
  who(adding, added);
  as_json(adding, added);

  const auto [listing, listed] = action("list", "List models and versions", reported("list", list, Place::kAny));
  const auto from_afar = [](CLI::App* command, RegistryOptions* options) {
    command->add_option("--registry-cache", options->cache,
                        "folder for what is downloaded from remote registries; default: serin/models in $XDG_CACHE_HOME or in ~/.cache");
    add_tls_flags(*command, options->tls);
  };
  from_afar(listing, listed);
  listing->add_option("model", listed->name, "only this one");
  as_json(listing, listed);

  const auto [showing, shown] = action("show", "Show a version: files, origin, tags, reports", reported("show", show, Place::kAny));
  which(showing, shown, /*required=*/false);  // models:/NAME@ALIAS has one
  from_afar(showing, shown);
  as_json(showing, shown);

  const auto [tagging, tagged] = action("tag", "Give a version a tag, which any other version loses", reported("tag", tag));
  which(tagging, tagged);
  tagging->add_option("tag", tagged->tag, "such as production")->required();
  tagging->add_flag("--remove", tagged->remove, "take the tag away instead");
  who(tagging, tagged);

  const auto [retiring, retired] =
      action("retire", "Take a version out of use; it is neither newest nor tagged nor pulled any more", reported("retire", retire));
  which(retiring, retired);
  retiring->add_option("--reason", retired->reason, "shown to everybody who asks for it")->required();
  who(retiring, retired);

  const auto [attaching, attached] =
      action("attach", "Attach a file to a version, such as the report of an evaluation", reported("attach", attach));
  which(attaching, attached);
  attaching->add_option("file", attached->path, "the file")->required();
  who(attaching, attached);

  const auto [pulling, pulled] =
      action("pull", "Write a version into a folder that `serin serve --models` reads", reported("pull", pull, Place::kAny));
  which(pulling, pulled, /*required=*/false);
  from_afar(pulling, pulled);
  pulling->add_option("into", pulled->path, "folder of models: the version becomes INTO/MODEL/NUMBER");
  as_json(pulling, pulled);

  const auto [pushing, pushed] =
      action("push", "Upload a version, with its reports and tag, to a registry in a bucket", reported("push", push));
  which(pushing, pushed);
  pushing->add_option("to", pushed->path, "s3://BUCKET[/PREFIX]: the registry there, which the first push makes")->required();
  from_afar(pushing, pushed);
  who(pushing, pushed);
  as_json(pushing, pushed);

  const auto [recalling, recalled] = action("history", "Print all changes of a model", reported("history", history));
  recalling->add_option("model", recalled->name, "name of the model")->required();
  as_json(recalling, recalled);

  const auto [verifying, verified] =
      action("verify", "Read everything and compare it with its digests; exit code 1 if something differs", verify);
  verifying->add_option("model", verified->name, "only this one");

  const auto [collecting, collected] =
      action("gc", "Remove versions that are retired for some time, and files that nothing names", reported("gc", collect));
  collecting->add_option("model", collected->name, "only this one");
  collecting->add_option("--days", collected->days, "for how long a version must be retired")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  who(collecting, collected);
}

}  // namespace serin::cli
