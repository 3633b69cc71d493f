// slice_watch.h: Tells the addresses of versions from EndpointSlices, as they change.
//
//   SliceWatch watch(cluster, {.zone = "zone-a", .taints = {}}, 256);
//   watch.follow({.labels = {{kServiceLabel, "serin-v1"}}, .port = "http"}, [](const Result<SliceAddresses>& found) { ... });
//   watch.begin();
//
// One connection follows all slices of a namespace, however many versions choose from them. Another one follows the nodes, where taints matter.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "router/kubernetes/api_client.h"
#include "router/kubernetes/endpoint_slices.h"
#include "runtime/base/result.h"

namespace serin::kubernetes {

class SliceWatch {
 public:
  /// Gets the addresses once they are known and after each change of them, and the error of an attempt that failed. An error changes nothing.
  /// Called on a thread of the watch, until the watch is destroyed.
  using Tell = std::function<void(const Result<SliceAddresses>& found)>;

  struct Options {
    std::string zone;  ///< the router's own; empty: hints are ignored
    Names taints;      ///< keys that say of a node that it is about to end; empty: nodes are not looked at
  };

  /// `most`: addresses of one version.
  SliceWatch(Cluster cluster, Options options, size_t most);
  ~SliceWatch();

  /// Before begin().
  void follow(SliceSelection selection, Tell tell);
  void begin();
  /// The name that a server of this service has within the cluster; empty: the selection names no service.
  std::string server_name(const SliceSelection& selection) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace serin::kubernetes
