// resource_watch.h: Asks the endpoints of a service for their metrics while a rollout runs, and tells the judge. Belongs to one io thread, and
// never touches the data path.
//
// Between rollouts it asks the versions other than stable from time to time, so that it is known what they spend without a request.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "router/proxy/service.h"
#include "router/rollout/resources.h"
#include "runtime/net/client.h"
#include "runtime/net/loop.h"

namespace serin::router {

class ResourceWatch {
 public:
  /// On the io thread of `loop`, where it must be destroyed, too.
  ResourceWatch(net::Loop& loop, Service& service);

 private:
  /// An endpoint, and what its last page had.
  struct Source {
    Source(net::Loop& loop, const net::ClientOptions& options) : client(loop, options) {}
    std::shared_ptr<EndpointState> endpoint;
    net::Client client;
    std::optional<rollout::ResourceSample> last;
    uint64_t last_requests = 0;  // the router's own count
    Time last_at;
    std::optional<double> idle_cpu;
    uint16_t pointed_to = 0;  // the port at which it says its metrics are
  };
  struct Round;

  void ask();
  void ask_arm(const std::shared_ptr<Round>& round, size_t version, rollout::Arm arm);
  void ask_source(const std::shared_ptr<Round>& round, Source& source, rollout::Arm arm);
  bool follow(Source& source, const Result<net::Response>& answer) const;
  void answered(const std::shared_ptr<Round>& round, Source& source, rollout::Arm arm, const Result<net::Response>& answer);
  void learn_idle(Source& source, rollout::ResourceSample& now, uint64_t requests) const;
  void finish(Round& round);
  net::Origin origin_of(const Source& source) const;
  Source& source_of(const std::shared_ptr<EndpointState>& endpoint);

  net::Loop& loop_;
  Service& service_;
  std::shared_ptr<const rollout::Spec> spec_;
  std::vector<std::unique_ptr<Source>> sources_;
  net::Timer timer_;
};

}  // namespace serin::router
