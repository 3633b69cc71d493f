// endpoint_watch.h: keeps the endpoints of one version as a file or a name server has them. Lives on one io thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "router/proxy/endpoints.h"
#include "runtime/net/loop.h"

namespace serin::router {

class EndpointWatch {
 public:
  /// `asked(whether the list was replaced)` is called after every question that was answered.
  EndpointWatch(std::string service, Endpoints& endpoints, std::function<void(bool)> asked);

 private:
  void ask();
  void ask_file();
  void learn_file(const Result<std::string>& text);
  void ask_name();
  void learn(Result<std::vector<Endpoint>> found);
  bool replace(const std::vector<Endpoint>& found);

  const std::string service_;
  Endpoints& endpoints_;
  std::function<void(bool)> asked_;
  std::string seen_;     // what the file held the last time
  std::string trouble_;  // the last complaint: the same one is not logged again
  net::Timer timer_;
  std::shared_ptr<void> alive_ = std::make_shared<int>();  // an answer may come too late
};

}  // namespace serin::router
