#include "router/kubernetes/slice_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "kernels/mutex.h"
#include "router/kubernetes/collection.h"
#include "runtime/base/log.h"

namespace serin::kubernetes {
namespace {

namespace json = boost::json;

/// What the addresses of a version depend on besides its slices.
struct Choice {
  SlicePreferences preferences;
  size_t most;
};

constexpr size_t kMostServices = 64;  // in a selector; where there are more, all slices of the namespace are followed

struct Follower {
  SliceSelection selection;
  SliceWatch::Tell tell;
  std::optional<SliceAddresses> told;
};

/// Where every version names a service, only their slices: a namespace may have thousands of others.
std::string query_of(const std::vector<Follower>& followers) {
  std::set<std::string> services;
  for (const Follower& follower : followers) {
    const auto service = follower.selection.labels.find(kServiceLabel);
    if (service == follower.selection.labels.end()) return "";
    services.insert(service->second);
  }
  if (services.size() > kMostServices) return "";
  std::string names;
  for (const std::string& service : services) names += fmt::format("{}{}", names.empty() ? "" : ",", service);
  return "?labelSelector=" + escaped(fmt::format("{} in ({})", kServiceLabel, names));
}

/// Of a Node. The rest of it is twenty times as long, and a cluster has thousands.
json::object name_and_taints(const json::object& node) {
  json::object kept{{"metadata", json::object{{"name", text_at(node, {"metadata", "name"})}}}};
  if (const json::value* taints = find_at(node, {"spec", "taints"})) kept["spec"] = json::object{{"taints", *taints}};
  return kept;
}

/// What is known of one namespace. Used under the lock of State.
struct Namespace {
  std::vector<Follower> followers;
  Slices slices;

  void list(const std::vector<json::object>& all, const Choice& choice) {
    slices.clear();
    for (const json::object& object : all) {
      if (auto slice = read_slice(object)) {
        std::string name = slice->name;
        slices.insert_or_assign(std::move(name), *std::move(slice));
      }
    }
    for (Follower& follower : followers) choose(follower, choice);
  }

  /// Only the versions that the slice belongs to, or did, are chosen for anew.
  void change(const json::object& object, bool removed, const Choice& choice) {
    auto slice = read_slice(object);
    if (!slice) return;
    const auto before = slices.find(slice->name);
    std::vector<Follower*> concerned;
    for (Follower& follower : followers) {
      const Labels& wanted = follower.selection.labels;
      if (slice->has(wanted) || (before != slices.end() && before->second.has(wanted))) concerned.push_back(&follower);
    }
    if (!removed) {
      std::string name = slice->name;
      slices.insert_or_assign(std::move(name), *std::move(slice));
    } else if (before != slices.end()) {
      slices.erase(before);
    }
    for (Follower* follower : concerned) choose(*follower, choice);
  }

  bool names_node(std::string_view node) const {
    return std::ranges::any_of(slices, [&](const auto& slice) {
      return std::ranges::find(slice.second.endpoints, node, &EndpointSlice::Endpoint::node) != slice.second.endpoints.end();
    });
  }

  /// After other preferences. Before the first list there is nothing to choose from, and nothing to tell.
  void choose_again(const Choice& choice) {
    for (Follower& follower : followers)
      if (follower.told) choose(follower, choice);
  }

  void choose(Follower& follower, const Choice& choice) const {
    SliceAddresses found = choose_addresses(slices, follower.selection, choice.preferences, choice.most);
    if (follower.told == found) return;
    follower.told = found;
    follower.tell(std::move(found));
  }
};

}  // namespace

struct SliceWatch::State {
  State(Cluster of, Options options, size_t most)
      : cluster(std::move(of)), taints(std::move(options.taints)), choice{{.zone = std::move(options.zone), .leaving = {}}, most} {}

  const std::string& name_space_of(const SliceSelection& selection) const {
    return selection.name_space.empty() ? cluster.name_space : selection.name_space;
  }
  void follow_slices(const std::string& name) SERIN_REQUIRES(mutex);
  void follow_nodes();
  void list_nodes(const std::vector<json::object>& all);
  void change_node(const json::object& node, bool removed);
  void set_leaving(Names leaving) SERIN_REQUIRES(mutex);
  bool names_node(std::string_view node) const SERIN_REQUIRES(mutex) {
    return std::ranges::any_of(namespaces, [&](const auto& each) { return each.second.names_node(node); });
  }

  const Cluster cluster;
  const Names taints;
  Mutex mutex;
  Choice choice SERIN_GUARDED_BY(mutex);
  std::map<std::string, Namespace> namespaces SERIN_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Collection>> collections;  // last: their threads use the others
};

void SliceWatch::State::follow_slices(const std::string& name) {
  const std::string query = query_of(namespaces.at(name).followers);
  Collection::Reader reader;
  reader.listed = [this, name](const std::vector<json::object>& all) {
    const MutexLock lock(mutex);
    namespaces.at(name).list(all, choice);
  };
  reader.changed = [this, name](const json::object& object, bool removed) {
    const MutexLock lock(mutex);
    namespaces.at(name).change(object, removed, choice);
  };
  reader.failed = [this, name](const Error& trouble) {
    const MutexLock lock(mutex);
    for (const Follower& follower : namespaces.at(name).followers) follower.tell(trouble);
  };
  const std::string path = fmt::format("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices{}", name, query);
  collections.push_back(std::make_unique<Collection>(cluster, path, std::move(reader)));
}

void SliceWatch::State::follow_nodes() {
  collections.push_back(std::make_unique<Collection>(
      cluster, "/api/v1/nodes",
      Collection::Reader{.listed = [this](const std::vector<json::object>& all) { list_nodes(all); },
                         .changed = [this](const json::object& node, bool removed) { change_node(node, removed); },
                         .failed = [](const Error&) {},  // it was logged, and the nodes that are known stay
                         .kept = name_and_taints}));
}

/// A node that is gone stays among those that end while an endpoint is on it: its pods are removed a while later.
void SliceWatch::State::list_nodes(const std::vector<json::object>& all) {
  Names leaving, there;
  for (const json::object& node : all) {
    const std::string name = text_at(node, {"metadata", "name"});
    there.insert(name);
    if (has_taint(node, taints)) leaving.insert(name);
  }
  const MutexLock lock(mutex);
  for (const std::string& name : choice.preferences.leaving)
    if (!there.contains(name) && names_node(name)) leaving.insert(name);
  set_leaving(std::move(leaving));
}

void SliceWatch::State::change_node(const json::object& node, bool removed) {
  const std::string name = text_at(node, {"metadata", "name"});
  const MutexLock lock(mutex);
  const bool leaves = removed ? names_node(name) : has_taint(node, taints);
  Names leaving = choice.preferences.leaving;
  if (leaves)
    leaving.insert(name);
  else
    leaving.erase(name);
  set_leaving(std::move(leaving));
}

void SliceWatch::State::set_leaving(Names leaving) {
  const Names before = std::exchange(choice.preferences.leaving, std::move(leaving));
  if (before == choice.preferences.leaving) return;
  for (const std::string& name : choice.preferences.leaving)
    if (!before.contains(name)) log::info("node '{}' has a taint of `node_taints`, or is gone: its endpoints are drained", name);
  for (const std::string& name : before)
    if (!choice.preferences.leaving.contains(name)) log::info("node '{}' has no taint of `node_taints` any more", name);
  for (auto& [name, each] : namespaces) each.choose_again(choice);
}

SliceWatch::SliceWatch(Cluster cluster, Options options, size_t most)
    : state_(std::make_unique<State>(std::move(cluster), std::move(options), most)) {}
SliceWatch::~SliceWatch() = default;

std::string SliceWatch::server_name(const SliceSelection& selection) const {
  const auto service = selection.labels.find(kServiceLabel);
  return service == selection.labels.end() ? "" : fmt::format("{}.{}.svc", service->second, state_->name_space_of(selection));
}

void SliceWatch::follow(SliceSelection selection, Tell tell) {
  const MutexLock lock(state_->mutex);
  const std::string name = state_->name_space_of(selection);
  state_->namespaces[name].followers.push_back({.selection = std::move(selection), .tell = std::move(tell), .told = std::nullopt});
}

void SliceWatch::begin() {
  const MutexLock lock(state_->mutex);
  for (const auto& [name, each] : state_->namespaces) state_->follow_slices(name);
  if (!state_->taints.empty()) state_->follow_nodes();
}

}  // namespace serin::kubernetes
