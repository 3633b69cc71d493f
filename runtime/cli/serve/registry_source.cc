#include "runtime/cli/serve/registry_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "runtime/base/cache_folder.h"
#include "runtime/base/log.h"
#include "runtime/registry/mlflow_registry.h"
#include "runtime/registry/peers.h"
#include "runtime/registry/registry.h"
#include "runtime/registry/remote_address.h"
#include "runtime/registry/sha256.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;
using registry::Reference;
using registry::Registry;
using registry::Version;

constexpr std::string_view kScheme = "registry://", kTag = "production";

using registry::Remote;
using Clock = std::chrono::steady_clock;

/// What one place names: versions of one model, or the tagged one of each.
struct Place {
  std::string folder;  ///< of the registry, or of the mirror of a remote one
  std::optional<Reference> reference;
  std::shared_ptr<Remote> remote = nullptr;
};

/// The last part is a model if it names a version, or if a model lies there.
Result<Place> parse(std::string text) {
  text.erase(0, kScheme.size());
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  if (text.empty()) return invalid(fmt::format("'{}' names no folder", kScheme));
  const size_t slash = text.rfind('/');
  const std::string last = text.substr(slash == std::string::npos ? 0 : slash + 1);
  std::error_code error;
  const bool has_version = last.find_first_of(":@") != std::string::npos;
  if (!has_version && !fs::exists(text + "/oci-layout", error)) return Place{text, {}};
  SERIN_TRY(Reference reference, Reference::parse(last));
  if (!has_version) reference.version = kTag;
  return Place{slash == std::string::npos ? "." : text.substr(0, std::max<size_t>(slash, 1)), std::move(reference)};
}

/// Remote registries by their address, so that places in one share its mirror and what is known of it.
class Remotes {
 public:
  Remotes(std::string cache, std::string ca, std::shared_ptr<registry::Peers> peers)
      : cache_(std::move(cache)), ca_(std::move(ca)), peers_(std::move(peers)) {}

  /// The last part is a model if it names a version, or if one lies there. A web server has no list of models, so there it is always one.
  Result<Place> parse(std::string text) {
    if (text.starts_with(registry::kModels)) return of_mlflow(text);
    const bool has_list = registry::has_list_of_models(text);
    while (has_list && text.ends_with('/') && !text.ends_with("://")) text.pop_back();
    const size_t slash = text.rfind('/'), host = text.find("://") + 3;
    const bool has_path = slash != std::string::npos && slash >= host && slash + 1 < text.size();
    if (!has_path && !has_list)
      return invalid(
          fmt::format("'{}' names no model: a place is registry+https://HOST/PATH/MODEL[:TAG] or oci://HOST/PATH/MODEL[:TAG]", text));
    if (!has_path) return all_of(text);
    const std::string last = text.substr(slash + 1), folder = text.substr(0, slash);
    const bool has_version = last.find_first_of(":@") != std::string::npos;
    auto reference = Reference::parse(last);
    if (!reference && has_list && !has_version) return all_of(text);  // the prefix ends with what no model is named
    if (!reference) return reference.error();
    if (!has_version) reference->version = kTag;
    SERIN_TRY(const std::shared_ptr<Remote> remote, open(folder));
    const Status there = remote->refresh(*reference);
    if (!there && there.error().code == Code::kNotFound && has_list && !has_version) return all_of(text);
    if (!there) return there.error();
    return Place{remote->mirror(), *std::move(reference), remote};
  }

 private:
  Result<std::shared_ptr<Remote>> open(const std::string& address) {
    std::shared_ptr<Remote>& remote = known_[address];
    if (!remote) {
      SERIN_TRY(remote, registry::open_remote(address, cache_, {.ca = ca_}));
      remote->use(peers_);
    }
    return remote;
  }
  Result<Place> of_mlflow(const std::string& uri) {
    SERIN_TRY(Reference reference, registry::parse_model_uri(uri));
    SERIN_TRY(const std::shared_ptr<Remote> remote, open(std::string(registry::kModels)));
    SERIN_CHECK(remote->refresh(reference));
    return Place{remote->mirror(), std::move(reference), remote};
  }
  Result<Place> all_of(const std::string& address) {
    SERIN_TRY(const std::shared_ptr<Remote> remote, open(address));
    if (const auto models = remote->refresh_all(); !models) return models.error();
    return Place{remote->mirror(), {}, remote};
  }

  const std::string cache_, ca_;
  const std::shared_ptr<registry::Peers> peers_;
  std::map<std::string, std::shared_ptr<Remote>> known_;
};

Result<std::string> folder_of_versions(const std::string& asked) {
  if (!asked.empty()) return asked;
  const std::string cache = cache_folder();
  if (cache.empty()) return invalid("there is no folder for models of a registry: give one with --registry-cache");
  return cache + "/models";
}

/// Versions of one model, as they are to be served.
struct Wanted {
  std::string folder;  ///< of the registry
  std::shared_ptr<Remote> remote;
  std::map<uint64_t, Version> versions;
  serving::Labels labels;
};

/// Reads the registries, and copies what is not in the cache.
class Registries {
 public:
  Registries(std::vector<Place> places, std::string cache, std::chrono::milliseconds poll)
      : places_(std::move(places)), cache_(std::move(cache)), pause_(poll * kPollsOfRemote), next_(Clock::now() + pause_) {}

  Result<serving::ListedModels> read() {
    std::map<std::string, Wanted> wanted;
    for (const Place& place : places_) SERIN_CHECK(add(place, wanted));
    serving::ListedModels listed;
    for (const auto& [model, each] : wanted) {
      SERIN_TRY(listed.roots.emplace_back(), pull(model, each));
    }
    return listed;
  }

  /// The folders, for models that are added, and the indices.
  std::vector<std::string> files() {
    refresh_remote();
    std::vector<std::string> files;
    for (const Place& place : places_) {
      if (place.reference) {
        files.push_back(fmt::format("{}/{}/index.json", place.folder, place.reference->model));
        continue;
      }
      files.push_back(place.folder);
      const auto models = models_of(place);
      for (const std::string& model : models ? *models : std::vector<std::string>())
        files.push_back(fmt::format("{}/{}/index.json", place.folder, model));
    }
    return files;
  }

 private:
  static constexpr int kPollsOfRemote = 10;  // a request costs more than a look at a folder

  /// The mirror may have models that the registry has no more.
  static Result<std::vector<std::string>> models_of(const Place& place) {
    return place.remote ? place.remote->models() : Registry(place.folder).models();
  }

  /// A problem is said once: what is loaded goes on serving.
  void refresh_remote() {
    if (Clock::now() < next_) return;
    std::set<std::string> asked;
    for (const Place& place : places_) {
      const std::string name = place.reference ? place.reference->str() : place.folder;
      if (!place.remote || !asked.insert(place.folder + "/" + (place.reference ? place.reference->str() : "")).second) continue;
      const Status done = refresh(place);
      std::string& problem = problems_[name];
      const std::string now = done ? std::string() : done.error().message;
      if (now == std::exchange(problem, now)) continue;
      if (done)
        log::info("{}: the registry answers again", name);
      else
        log::error("{}; what is loaded goes on serving", now);
    }
    next_ = Clock::now() + pause_;
  }

  static Status refresh(const Place& place) {
    if (place.reference) return place.remote->refresh(*place.reference);
    const auto models = place.remote->refresh_all();
    return models ? Status() : Status(models.error());
  }

  static Status add(const Place& place, std::map<std::string, Wanted>& wanted) {
    const Registry registry(place.folder);
    if (place.reference) {
      SERIN_TRY(Version version, registry.find(*place.reference));
      if (version.retired && place.reference->version != version.digest)
        return Error{Code::kFailedPrecondition, fmt::format("{} is retired: {}", place.reference->str(), *version.retired)};
      return add(place, *place.reference, std::move(version), wanted);
    }
    SERIN_TRY(const std::vector<std::string> models, models_of(place));
    for (const std::string& model : models) {
      SERIN_TRY(std::vector<Version> versions, registry.versions(model));
      for (Version& version : versions)
        if (std::ranges::find(version.tags, kTag) != version.tags.end())
          SERIN_CHECK(add(place, {model, std::string(kTag)}, std::move(version), wanted));
    }
    return {};
  }

  static Status add(const Place& place, const Reference& reference, Version version, std::map<std::string, Wanted>& wanted) {
    Wanted& model = wanted.try_emplace(reference.model, Wanted{place.folder, place.remote, {}, {}}).first->second;
    if (model.folder != place.folder)
      return invalid(fmt::format("model '{}' is named in {} and in {}", reference.model, model.folder, place.folder));
    if (std::ranges::find(version.tags, reference.version) != version.tags.end()) model.labels[reference.version] = version.number;
    const uint64_t number = version.number;
    model.versions.emplace(number, std::move(version));
    return {};
  }

  /// One folder for each registry and each serin.yaml: versions with other settings are never mixed.
  Result<serving::ModelRoot> pull(const std::string& model, const Wanted& wanted) {
    const Version& highest = wanted.versions.rbegin()->second;
    const auto settings = std::ranges::find(highest.files, true, &registry::StoredFile::settings);
    std::error_code error;
    const std::string origin = fmt::format("{} {}", fs::absolute(wanted.folder, error).lexically_normal().string(),
                                           settings == highest.files.end() ? "" : settings->digest);
    constexpr size_t kDigits = 16;
    const std::string into = fmt::format("{}/{}", cache_, registry::digest_of(origin).substr(sizeof("sha256:") - 1, kDigits));
    serving::ModelRoot root{.path = into + "/" + model, .name = model, .versions = serving::VersionPolicy(), .labels = wanted.labels};
    for (const auto& [number, version] : wanted.versions) {
      root.versions->specific.push_back(number);
      if (!copied_.insert(fmt::format("{}/{}", root.path, number)).second) continue;  // compared once, not at every change of a tag
      const auto how = number == highest.number ? registry::Settings::kWrite : registry::Settings::kLeave;
      if (const Status done = pull(model, version, wanted, into, how); !done) {
        copied_.erase(fmt::format("{}/{}", root.path, number));
        return done.error();
      }
    }
    return root;
  }

  static Status pull(const std::string& model, const Version& version, const Wanted& wanted, const std::string& into,
                     registry::Settings settings) {
    if (wanted.remote) SERIN_CHECK(wanted.remote->fetch(model, version));
    const auto pulled = Registry(wanted.folder).pull({model, version.digest}, into, settings);
    return pulled ? Status() : Status(pulled.error());
  }

  std::vector<Place> places_;
  std::string cache_;
  std::set<std::string> copied_;
  const Clock::duration pause_;
  Clock::time_point next_;
  std::map<std::string, std::string> problems_;  // of remote registries, as last said
};

bool is_remote(const serving::ModelRoot& root) { return registry::is_remote_address(root.path); }

/// Null: none are named.
Result<std::shared_ptr<registry::Peers>> open_peers(const serving::ModelSource& source, const registry::PeerOptions& options,
                                                    metrics::Registry& metrics) {
  if (options.names.empty()) return nullptr;
  if (std::ranges::none_of(source.roots, is_remote))
    return invalid("--registry-peers: no model is in a remote registry (registry+https, s3, oci), so there is nothing to share");
  return registry::Peers::open(options, metrics);
}

}  // namespace

Status use_registries(serving::ModelSource& source, const RegistryOptions& options, metrics::Registry& metrics) {
  const auto is_registry = [](const serving::ModelRoot& root) { return root.path.starts_with(kScheme) || is_remote(root); };
  SERIN_TRY(const std::shared_ptr<registry::Peers> peers, open_peers(source, options.peers, metrics));
  if (std::ranges::none_of(source.roots, is_registry)) return {};
  SERIN_TRY(const std::string folder, folder_of_versions(options.cache));
  std::vector<Place> places;
  Remotes remotes(folder, options.ca, peers);
  std::string all;
  for (const serving::ModelRoot& root : source.roots) {
    if (!is_registry(root))
      return invalid(fmt::format("{}: folders and registries do not go together; start one server for each", root.path));
    SERIN_TRY(places.emplace_back(), is_remote(root) ? remotes.parse(root.path) : parse(root.path));
    all += (all.empty() ? "" : ", ") + root.path;
  }
  if (source.control == serving::Control::kExplicit)
    return invalid(all + ": tags decide what is loaded from a registry, so clients cannot (--control explicit)");
  const auto registries = std::make_shared<Registries>(std::move(places), folder, source.poll);
  SERIN_TRY(serving::ListedModels listed, registries->read());
  if (listed.roots.empty()) return Error{Code::kNotFound, fmt::format("{}: no model is tagged '{}'", all, kTag)};
  source.roots = std::move(listed.roots);
  source.list.path = all;
  source.list.read = [registries](const std::string&) { return registries->read(); };
  source.list.files = [registries] { return registries->files(); };
  return {};
}

}  // namespace serin::cli
