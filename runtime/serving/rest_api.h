// rest_api.h: the Open Inference Protocol v2 over REST: routes, headers and the life of a request between the socket and the batcher.
//
//   GET  /v2, /v2/health/live, /v2/health/ready, /v2/models, /v2/models/M[/versions/V][/ready]
//   POST /v2/models/M[/versions/V]/infer
//
// A server is live until one of its versions has lost its devices (Catalogue::usable): only another process can use them again, and x-serin-reason says so.
//
// Every answer carries x-serin-batch; answers of a model carry x-serin-version; an error's body is {"error": text} with x-serin-code and,
// where one field is to blame, x-serin-field beside it.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/net/server.h"
#include "runtime/serving/repository.h"

namespace serin::serving {

class RestApi {
 public:
  RestApi(net::Loops& loops, const Repository& repository, Host& host);
  ~RestApi();

  /// Give this to net::Server. Called on io threads.
  void handle(net::Request request, net::Responder responder);
  /// What /v2/health/ready says: not until everything was loaded, and not any more once the end is near. Everything else is answered all the time.
  void set_ready(bool ready) { ready_ = ready; }

 private:
  struct Route;
  void infer(const Route& route, net::Request request, net::Responder responder);
  net::Response metadata(const Route& route);
  net::Response model_ready(const Route& route);
  net::Response server_metadata() const;
  net::Response list_models();
  const Catalogue& catalogue();

  net::Loops& loops_;
  Host& host_;
  std::vector<Published<Catalogue>::Reader> readers_;  // one for each io thread
  std::atomic<bool> ready_{false};
};

}  // namespace serin::serving
