// endpoint_watch.h: Updates the endpoints of one version from a file, DNS or EndpointSlices of Kubernetes. Belongs to one io thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "router/kubernetes/slice_watch.h"
#include "router/proxy/endpoints.h"
#include "runtime/net/loop.h"

namespace serin::router {

class EndpointWatch {
 public:
  /// `asked(whether the list was replaced)` is called after every lookup that was answered. `slices` is needed where the source is
  /// EndpointSlices, and only here: it has not begun.
  EndpointWatch(net::Loop& loop, std::string service, Endpoints& endpoints, std::function<void(bool)> asked,
                kubernetes::SliceWatch* slices);

 private:
  void ask();
  void ask_file();
  void learn_file(const Result<std::string>& text);
  void ask_name();
  void follow(kubernetes::SliceWatch& slices);
  void learn_slices(const Result<kubernetes::SliceAddresses>& found);
  void learn(Result<std::vector<Endpoint>> found);
  bool replace(const std::vector<Endpoint>& found);

  net::Loop& loop_;
  const std::string service_;
  Endpoints& endpoints_;
  std::function<void(bool)> asked_;
  std::string seen_;     // the last content of the file
  std::string trouble_;  // the last problem: the same one is not logged again
  Endpoint pattern_;     // of an endpoint in EndpointSlices
  net::Timer timer_;
  std::shared_ptr<void> alive_ = std::make_shared<int>();  // an answer may arrive after destruction
};

}  // namespace serin::router
