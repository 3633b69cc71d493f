// collection.h: Follows a collection of objects: lists it once, then watches it from there, as the reflector of client-go does.
//
// Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
//
// A list comes in pages, of which no more is kept than the reader needs.
//
//   Collection slices(cluster, "/apis/discovery.k8s.io/v1/namespaces/models/endpointslices", {.listed = ..., .changed = ..., .failed = ...});
//
// A watch that ends goes on at the version that it has reached. Bookmarks advance this version while nothing changes. Only 410 (the version is
// too old for the server), or an answer that makes no sense, lists again. A failure changes nothing: what is known stays.
#pragma once

#include <boost/json.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "router/kubernetes/api_client.h"
#include "runtime/base/result.h"

namespace serin::kubernetes {

class Collection {
 public:
  /// All are called on a thread of the collection.
  struct Reader {
    std::function<void(const std::vector<boost::json::object>& all)> listed;  ///< in place of all that was known
    std::function<void(const boost::json::object& object, bool removed)> changed;
    std::function<void(const Error& trouble)> failed;  ///< an attempt, and another follows
    /// Of a listed object, what `listed` gets of it; empty: all.
    std::function<boost::json::object(const boost::json::object& object)> kept = {};
  };

  /// `path`: with its selectors.
  Collection(const Cluster& cluster, std::string path, Reader reader);
  ~Collection();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace serin::kubernetes
