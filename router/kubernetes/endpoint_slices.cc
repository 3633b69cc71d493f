#include "router/kubernetes/endpoint_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "router/kubernetes/api_client.h"
#include "runtime/base/number.h"

namespace serin::kubernetes {
namespace {

namespace json = boost::json;

bool condition(const json::object& endpoint, std::string_view name, bool if_absent) {
  const json::value* value = find_at(endpoint, {"conditions", name});
  return value != nullptr && value->is_bool() ? value->as_bool() : if_absent;
}

/// The first address alone: the others are the same endpoint once more.
std::optional<EndpointSlice::Endpoint> read_endpoint(const json::value& item) {
  if (!item.is_object()) return std::nullopt;
  const json::object& object = item.as_object();
  const json::array& addresses = array_at(object, {"addresses"});
  if (addresses.empty() || !addresses.front().is_string() || addresses.front().as_string().empty()) return std::nullopt;
  EndpointSlice::Endpoint endpoint{.address = std::string(std::string_view(addresses.front().as_string())),
                                   .pod = text_at(object, {"targetRef", "uid"}),
                                   .node = text_at(object, {"nodeName"}),
                                   .ready = condition(object, "ready", true),
                                   .draining = condition(object, "serving", true) && condition(object, "terminating", false)};
  for (const json::value& zone : array_at(object, {"hints", "forZones"}))
    if (zone.is_object()) endpoint.zones.push_back(text_at(zone.as_object(), {"name"}));
  return endpoint;
}

/// 0: the slice has none of this name.
uint16_t port_of(const EndpointSlice& slice, const std::string& port) {
  if (const auto number = parse_number<uint16_t>(port)) return *number;
  const auto named = slice.ports.find(port);
  return named == slice.ports.end() ? 0 : named->second;
}

/// An endpoint with its ports, while it is not decided whether it gets requests.
struct Candidate {
  SliceAddress address;
  bool ipv6;
  enum Rank { kReady, kLeaving, kDraining, kNone } rank;  // those of the lowest that there is get requests
  const EndpointSlice::Endpoint* endpoint;
};

Candidate::Rank rank_of(const EndpointSlice::Endpoint& endpoint, const Names& leaving) {
  if (endpoint.ready) return leaving.contains(endpoint.node) ? Candidate::kLeaving : Candidate::kReady;
  return endpoint.draining ? Candidate::kDraining : Candidate::kNone;
}

/// Of all slices, in an order that does not depend on theirs. What is there twice is there once: ready before not ready, IPv4 before IPv6.
std::vector<Candidate> unique_candidates(std::vector<Candidate> all) {
  std::ranges::sort(all, [](const Candidate& a, const Candidate& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.ipv6 != b.ipv6) return b.ipv6;
    return a.address < b.address;
  });
  std::set<SliceAddress> addresses;
  std::set<std::pair<std::string, uint16_t>> pods;
  std::erase_if(all, [&](const Candidate& each) {
    const std::string& pod = each.endpoint->pod;
    return !addresses.insert(each.address).second || (!pod.empty() && !pods.emplace(pod, each.address.port).second);
  });
  return all;
}

bool is_for(const Candidate& candidate, const std::string& zone) {
  return std::ranges::find(candidate.endpoint->zones, zone) != candidate.endpoint->zones.end();
}

std::string describe(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  return text;
}

std::string names_of(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", name);
  return text.empty() ? "none" : text;
}

}  // namespace

bool EndpointSlice::has(const Labels& wanted) const {
  return std::ranges::all_of(wanted, [this](const auto& label) {
    const auto found = labels.find(label.first);
    return found != labels.end() && found->second == label.second;
  });
}

std::optional<EndpointSlice> read_slice(const json::object& object) {
  EndpointSlice slice{.name = text_at(object, {"metadata", "name"})};
  if (slice.name.empty()) return std::nullopt;
  if (const json::value* labels = find_at(object, {"metadata", "labels"}); labels != nullptr && labels->is_object())
    for (const auto& [key, value] : labels->as_object())
      if (value.is_string()) slice.labels.emplace(key, std::string_view(value.as_string()));
  const std::string type = text_at(object, {"addressType"});
  slice.ipv6 = type == "IPv6";
  for (const json::value& item : array_at(object, {"ports"})) {
    if (!item.is_object()) continue;
    const std::string protocol = text_at(item.as_object(), {"protocol"});
    const json::value* number = find_at(item.as_object(), {"port"});
    if ((protocol.empty() || protocol == "TCP") && number != nullptr && number->is_int64() && number->as_int64() > 0 &&
        number->as_int64() <= UINT16_MAX)
      slice.ports.emplace(text_at(item.as_object(), {"name"}), static_cast<uint16_t>(number->as_int64()));
  }
  if (!slice.ipv6 && type != "IPv4") return slice;
  for (const json::value& item : array_at(object, {"endpoints"}))
    if (auto endpoint = read_endpoint(item)) slice.endpoints.push_back(*std::move(endpoint));
  return slice;
}

SliceAddresses choose_addresses(const Slices& slices, const SliceSelection& selection, const SlicePreferences& preferences, size_t most) {
  const std::string& zone = preferences.zone;
  SliceAddresses chosen;
  std::vector<Candidate> all;
  std::set<std::string> names;  // of ports
  bool any = false, without_port = false, without_grpc = false;
  for (const auto& [name, slice] : slices) {
    if (!slice.has(selection.labels)) continue;
    any = true;
    for (const auto& [port, number] : slice.ports) names.insert(port);
    const uint16_t port = port_of(slice, selection.port);
    const uint16_t grpc_port = selection.grpc_port.empty() ? 0 : port_of(slice, selection.grpc_port);
    without_port |= port == 0 && !slice.endpoints.empty();
    without_grpc |= grpc_port == 0 && !selection.grpc_port.empty() && !slice.endpoints.empty();
    if (port == 0) continue;
    for (const EndpointSlice::Endpoint& endpoint : slice.endpoints)
      all.push_back({.address = {endpoint.address, port, grpc_port},
                     .ipv6 = slice.ipv6,
                     .rank = rank_of(endpoint, preferences.leaving),
                     .endpoint = &endpoint});
  }
  const std::vector<Candidate> candidates = unique_candidates(std::move(all));
  const Candidate::Rank best = candidates.empty() ? Candidate::kNone : candidates.front().rank;
  const auto is_best = [best](const Candidate& each) { return each.rank == best; };
  const bool hinted =
      best < Candidate::kDraining && !zone.empty() &&
      std::ranges::all_of(candidates, [&](const Candidate& each) { return !is_best(each) || !each.endpoint->zones.empty(); });
  const bool near = hinted && std::ranges::any_of(candidates, [&](const Candidate& each) { return is_best(each) && is_for(each, zone); });
  for (const Candidate& each : candidates)
    if (best != Candidate::kNone && is_best(each) && (!near || is_for(each, zone))) chosen.addresses.push_back(each.address);
  std::ranges::sort(chosen.addresses);
  const size_t count = chosen.addresses.size();
  if (!any) {
    chosen.remark = fmt::format("no EndpointSlice has the labels {}", describe(selection.labels));
  } else if (without_port) {
    chosen.remark = fmt::format("there are EndpointSlices without a port named '{}'; theirs: {}", selection.port, names_of(names));
  } else if (without_grpc) {
    chosen.remark = fmt::format("there are EndpointSlices without a port named '{}'; theirs: {}", selection.grpc_port, names_of(names));
  } else if (count > most) {
    chosen.remark = fmt::format("there are {} addresses, of which {} get requests", count, most);
  }
  if (count > most) chosen.addresses.resize(most);
  return chosen;
}

bool has_taint(const json::object& node, const Names& keys) {
  return std::ranges::any_of(array_at(node, {"spec", "taints"}), [&](const json::value& taint) {
    return taint.is_object() && keys.contains(text_at(taint.as_object(), {"key"}));
  });
}

}  // namespace serin::kubernetes
