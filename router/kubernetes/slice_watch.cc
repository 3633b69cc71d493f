#include "router/kubernetes/slice_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "router/kubernetes/collection.h"

namespace serin::kubernetes {
namespace {

namespace json = boost::json;

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

/// What is known of one namespace. After begin() it belongs to the thread of its collection.
class Namespace {
 public:
  void add(Follower follower) { followers_.push_back(std::move(follower)); }
  void begin(const Cluster& cluster, const std::string& name, std::string zone, size_t most) {
    zone_ = std::move(zone);
    most_ = most;
    collection_.emplace(cluster, fmt::format("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices{}", name, query_of(followers_)),
                        Collection::Reader{.listed = [this](const std::vector<json::object>& all) { list(all); },
                                           .changed = [this](const json::object& object, bool removed) { change(object, removed); },
                                           .failed =
                                               [this](const Error& trouble) {
                                                 for (const Follower& follower : followers_) follower.tell(trouble);
                                               }});
  }

 private:
  void list(const std::vector<json::object>& all) {
    slices_.clear();
    for (const json::object& object : all) {
      if (auto slice = read_slice(object)) {
        std::string name = slice->name;
        slices_.insert_or_assign(std::move(name), *std::move(slice));
      }
    }
    for (Follower& follower : followers_) choose(follower);
  }

  /// Only the versions that the slice belongs to, or did, are chosen for anew.
  void change(const json::object& object, bool removed) {
    auto slice = read_slice(object);
    if (!slice) return;
    const auto before = slices_.find(slice->name);
    std::vector<Follower*> concerned;
    for (Follower& follower : followers_) {
      const Labels& wanted = follower.selection.labels;
      if (slice->has(wanted) || (before != slices_.end() && before->second.has(wanted))) concerned.push_back(&follower);
    }
    if (!removed) {
      std::string name = slice->name;
      slices_.insert_or_assign(std::move(name), *std::move(slice));
    } else if (before != slices_.end()) {
      slices_.erase(before);
    }
    for (Follower* follower : concerned) choose(*follower);
  }

  void choose(Follower& follower) {
    SliceAddresses found = choose_addresses(slices_, follower.selection, zone_, most_);
    if (follower.told == found) return;
    follower.told = found;
    follower.tell(std::move(found));
  }

  std::vector<Follower> followers_;
  Slices slices_;
  std::string zone_;
  size_t most_ = 0;
  std::optional<Collection> collection_;  // last: its thread uses the others
};

}  // namespace

struct SliceWatch::State {
  const Cluster cluster;
  const std::string zone;
  const size_t most;
  std::map<std::string, Namespace> namespaces = {};

  const std::string& name_space_of(const SliceSelection& selection) const {
    return selection.name_space.empty() ? cluster.name_space : selection.name_space;
  }
};

SliceWatch::SliceWatch(Cluster cluster, std::string zone, size_t most) : state_(new State{std::move(cluster), std::move(zone), most}) {}
SliceWatch::~SliceWatch() = default;

std::string SliceWatch::server_name(const SliceSelection& selection) const {
  const auto service = selection.labels.find(kServiceLabel);
  return service == selection.labels.end() ? "" : fmt::format("{}.{}.svc", service->second, state_->name_space_of(selection));
}

void SliceWatch::follow(SliceSelection selection, Tell tell) {
  const std::string name = state_->name_space_of(selection);
  state_->namespaces[name].add({.selection = std::move(selection), .tell = std::move(tell), .told = std::nullopt});
}

void SliceWatch::begin() {
  for (auto& [name, each] : state_->namespaces) each.begin(state_->cluster, name, state_->zone, state_->most);
}

}  // namespace serin::kubernetes
