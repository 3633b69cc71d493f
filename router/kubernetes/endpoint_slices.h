// endpoint_slices.h: EndpointSlices of Kubernetes, and the addresses of them that get requests. Pure: nothing here asks a server.
//
// API: https://kubernetes.io/docs/reference/kubernetes-api/service-resources/endpoint-slice-v1/
// The rules are those of kube-proxy (https://kubernetes.io/docs/reference/networking/virtual-ips/):
//   - An address gets requests while its condition `ready` is true or absent.
//   - One that is `serving` and `terminating` gets none, unless no address is ready.
//   - Where every ready address has a hint of zones, those for the router's own zone are preferred, if there is any.
// One rule is added: an address on a node that is about to end gets none, unless no other one is ready.
#pragma once

#include <boost/json.hpp>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace serin::kubernetes {

using Labels = std::map<std::string, std::string, std::less<>>;
using Names = std::set<std::string, std::less<>>;
inline constexpr char kServiceLabel[] = "kubernetes.io/service-name";

struct EndpointSlice {
  struct Endpoint {
    std::string address;
    std::string pod;   ///< its uid; empty: what is behind it is no pod
    std::string node;  ///< its name; empty: unknown
    bool ready = true;
    bool draining = false;           ///< serving, and terminating
    std::vector<std::string> zones;  ///< that it is meant for; empty: no hint
  };
  std::string name;
  Labels labels;
  bool ipv6 = false;
  std::map<std::string, uint16_t, std::less<>> ports;  ///< of TCP, by name
  std::vector<Endpoint> endpoints;

  bool has(const Labels& wanted) const;
};

/// Empty: not an object with a name. A field of another type counts as absent. A slice of host names has no endpoints.
std::optional<EndpointSlice> read_slice(const boost::json::object& object);

/// The slices of one version, and which of their ports.
struct SliceSelection {
  std::string name_space;  ///< empty: that of the router
  Labels labels;           ///< that a slice has; a service is kServiceLabel
  std::string port;        ///< a name, or a number that every address has
  std::string grpc_port;   ///< the same; empty: none
  bool operator==(const SliceSelection&) const = default;
};

struct SliceAddress {
  std::string host;
  uint16_t port = 0;
  uint16_t grpc_port = 0;  ///< 0: none
  auto operator<=>(const SliceAddress&) const = default;
};

struct SliceAddresses {
  std::vector<SliceAddress> addresses;  ///< sorted, each once, at most as many as asked for; a pod in slices of both families by IPv4
  std::string remark;                   ///< why there are none, or fewer than there are; empty: nothing to say
  bool operator==(const SliceAddresses&) const = default;
};

using Slices = std::map<std::string, EndpointSlice, std::less<>>;  // by name

struct SlicePreferences {
  std::string zone;  ///< the router's own; empty: hints are ignored
  Names leaving;     ///< nodes that are about to end
};

SliceAddresses choose_addresses(const Slices& slices, const SliceSelection& selection, const SlicePreferences& preferences, size_t most);

/// Whether a Node has a taint with one of these keys.
bool has_taint(const boost::json::object& node, const Names& keys);

}  // namespace serin::kubernetes
