// health_checker.h: Checks the health of every endpoint of a service in turn, without end. Belongs to one io thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "router/proxy/endpoints.h"
#include "runtime/net/client.h"
#include "runtime/net/loop.h"

namespace serin::router {

class HealthChecker {
 public:
  /// `changed(version index)` is called on the io thread after the first check of a version and whenever its healthy count changed.
  HealthChecker(net::Loop& loop, std::string service, std::vector<std::shared_ptr<Endpoints>>& versions,
                std::function<void(size_t)> changed);
  /// On the io thread, also after a version's list was replaced. The checker must be destroyed there, too.
  void follow_lists();
  /// Asks the endpoint at once, in addition to its checks. `told`: whether it lives; not called if that remains unknown. While a question is
  /// under way, all further ones are one, which follows it.
  void ask_for_life(const std::shared_ptr<EndpointState>& endpoint, std::function<void(bool alive)> told);

 private:
  struct Probe {
    Probe(net::Loop& loop, const net::ClientOptions& options) : client(loop, options) {}
    size_t version = 0;
    std::shared_ptr<EndpointState> endpoint;
    int failures = 0, successes = 0;  // in a row
    net::Timer timer;
    net::Client client;                     // its own, so that its connection ends with it
    bool questioned = false;                // ask_for_life() has a question under way
    std::function<void(bool alive)> again;  // and one more was asked meanwhile: for the latest
  };
  void send(Probe& probe, std::function<void(const Result<net::Response>&)> done);
  void ask(Probe& probe);
  void question_life(Probe& probe, std::function<void(bool alive)> told);
  void learn(Probe& probe, const Result<net::Response>& answer);

  net::Loop& loop_;
  const std::string service_;
  std::vector<std::shared_ptr<Endpoints>>& versions_;
  std::function<void(size_t)> changed_;
  std::vector<std::unique_ptr<Probe>> probes_;
};

}  // namespace serin::router
