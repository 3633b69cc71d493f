// api_client.h: A client of the Kubernetes API: objects as JSON, by the paths of its REST API.
//
// API: https://kubernetes.io/docs/reference/using-api/api-concepts/
//
//   SERIN_TRY(const Cluster cluster, in_cluster());
//   ApiClient api(cluster);
//   SERIN_TRY(const json::object slices, api.get("/apis/discovery.k8s.io/v1/namespaces/models/endpointslices"));
//   SERIN_TRY(const json::object lease, api.replace(path, changed));       // kConflict: its resourceVersion is no longer the latest
//
// The token of a service account expires. It is read from its file again once a minute, and after an answer 401.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/net/http.h"
#include "runtime/net/tls.h"

namespace serin::kubernetes {

/// How to reach one API server, and as whom.
struct Cluster {
  net::Origin server;
  std::string name_space;                   ///< that this program works in
  std::string token_file;                   ///< empty: no token is sent
  std::shared_ptr<net::TlsContext> tls;     ///< if the server is secure
  std::chrono::milliseconds timeout{2000};  ///< for one request
};

/// From the files and variables that Kubernetes puts into each pod of a service account. kNotFound: this is no such pod.
Result<Cluster> in_cluster();

/// "Kind/name" does not hold for every text: lower-case letters, digits, '-' and '.', at most `limit` bytes; other bytes become '-'.
std::string as_name(std::string_view text, size_t limit = 63);

/// As a value in a query, such as a selector of labels.
std::string escaped(std::string_view text);

/// The text at a path of members, such as text_at(object, {"metadata", "name"}); empty if there is none.
std::string text_at(const boost::json::object& object, std::initializer_list<std::string_view> path);
/// The value there; null if there is none.
const boost::json::value* find_at(const boost::json::object& object, std::initializer_list<std::string_view> path);
/// The list there; empty if there is none.
const boost::json::array& array_at(const boost::json::object& object, std::initializer_list<std::string_view> path);

/// Thread-safe; every call waits, at most for the timeout.
///
/// Errors: kUnavailable (no connection, no answer in time, 429, 5xx), kNotFound, kAlreadyExists, kConflict (another resourceVersion),
/// kInvalidArgument (the object is refused), kPermissionDenied (401, 403), kOutOfRange (410). After kUnavailable it is unknown whether a
/// change was made. The message names the request and the reason that the server gives.
class ApiClient {
 public:
  explicit ApiClient(Cluster cluster);
  ~ApiClient();

  const Cluster& cluster() const;
  Result<boost::json::object> get(const std::string& path);
  /// The same of a collection: its `items` are an array. An answer without them is no empty collection, and so an error.
  Result<boost::json::object> list(const std::string& path);
  Result<boost::json::object> create(const std::string& collection, const boost::json::object& object);
  Result<boost::json::object> replace(const std::string& path, const boost::json::object& object);
  /// A merge patch (RFC 7386).
  Result<boost::json::object> merge(const std::string& path, const boost::json::object& patch);
  /// A JSON patch (RFC 6902), which can change one element of a list. kConflict: it sets another resourceVersion.
  Result<boost::json::object> patch(const std::string& path, const boost::json::array& operations);
  Status remove(const std::string& path);

  /// Receives the events of a watch, one JSON text each, until the server ends it, `at_most` has passed or stop() is called.
  Status watch(const std::string& path, std::chrono::seconds at_most, const std::function<void(std::string_view event)>& event);
  /// For how much longer the server has asked to be left alone, with Retry-After in an answer 429 or 5xx. Zero: it has not.
  std::chrono::milliseconds asked_to_wait() const;
  /// Ends all calls, now and later.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The pause before the next attempt: twice as long after each failure, and never shorter than the server asked for. It differs from one
/// program to the next, so that not all of them ask a server that has just started at once.
class Backoff {
 public:
  void reset() { pause_ = kFirst; }
  std::chrono::milliseconds next(std::chrono::milliseconds asked_to_wait);

 private:
  static constexpr std::chrono::milliseconds kFirst{200}, kMost{5000};
  std::chrono::milliseconds pause_ = kFirst;
  std::minstd_rand dice_{std::random_device{}()};
};

/// Watches a collection on a thread of its own, for as long as it lives. It calls back whenever something in the collection may have
/// changed: at the start of each watch and after each event. So a reader that looks again misses nothing, whatever ended a watch.
/// Examples are a server that was restarted, a resourceVersion that is too old, and a token that expired.
class ApiWatch {
 public:
  /// `path`: of a collection, with its selectors.
  ApiWatch(const Cluster& cluster, std::string path, std::function<void()> look_again);
  ~ApiWatch();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace serin::kubernetes
