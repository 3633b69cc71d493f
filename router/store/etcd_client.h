// etcd_client.h: etcd's v3 API over its JSON gateway (https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway), with several endpoints.
//
//   EtcdClient etcd({.endpoints = {{"10.0.0.1", 2379}, {"10.0.0.2", 2379}}});
//   SERIN_TRY(const json::object answer, etcd.call("/v3/kv/range", {{"key", base64("/serin/leader")}}));
//   etcd.watch("/serin/live/", [] { look_again(); });
//
// What its JSON does: bytes are base64, 64-bit integers are strings, what is zero or false is left out (a lost compare is a 200 without `succeeded`).
// Thread-safe, with an io thread of its own; call() waits.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/net/client.h"

namespace serin::store {

struct EtcdOptions {
  std::vector<net::Origin> endpoints;
  std::string user, password;                  ///< empty: without authentication
  std::chrono::milliseconds timeout{300};      ///< of one attempt: a member that lost its leader holds an answer back for seconds
  std::shared_ptr<const net::TlsContext> tls;  ///< for endpoints that are secure
};

std::string base64(std::string_view bytes);
/// Empty where it is none.
std::string from_base64(std::string_view text);
/// What ends the keys that begin with `prefix`, which ends with '/'.
std::string after_prefix(std::string prefix);
/// A member that is a 64-bit integer, as a string or not at all.
int64_t int64_of(const boost::json::object& object, std::string_view key);

class EtcdClient {
 public:
  explicit EtcdClient(EtcdOptions options);
  ~EtcdClient();

  /// Each endpoint in turn until one answers; the next call begins with that one. kUnavailable: none did, and whether one of them has done it is
  /// not known. kNotFound: a lease that is over. kPermissionDenied: wrong user or password, or not this user's key.
  Result<boost::json::object> call(std::string_view path, const boost::json::object& body);
  /// From now on `look_again` is called, on a thread of the client's, whenever a key with that prefix may have changed: after an event, and each time
  /// the watch had to be begun again. What changed is not said: who watches looks at everything, and so misses nothing that happened in between.
  void watch(const std::string& prefix, std::function<void()> look_again);

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace serin::store
