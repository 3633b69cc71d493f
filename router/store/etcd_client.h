// etcd_client.h: A client for etcd's v3 API over its JSON gateway, with several endpoints.
//
// API: https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway
//
//   EtcdClient etcd({.endpoints = {{"10.0.0.1", 2379}, {"10.0.0.2", 2379}}});
//   SERIN_TRY(const json::object answer, etcd.call("/v3/kv/range", {{"key", encode_base64("/serin/leader")}}));
//   etcd.watch("/serin/live/", [] { look_again(); });
//
// Properties of its JSON: bytes are base64, 64-bit integers are strings, and fields that are zero or false are omitted (a lost compare is a
// 200 without `succeeded`). Thread-safe; call() waits.
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
#include "runtime/net/http.h"
#include "runtime/net/tls.h"

namespace serin::store {

struct EtcdOptions {
  std::vector<net::Origin> endpoints;
  std::string user, password;                  ///< empty: without authentication
  std::chrono::milliseconds timeout{300};      ///< for one attempt: a member that lost its leader delays an answer for seconds
  std::shared_ptr<const net::TlsContext> tls;  ///< for endpoints that are secure
};

/// Empty if invalid.
std::string from_base64(std::string_view text);
/// The end of the key range that begins with `prefix`, which ends with '/'.
std::string after_prefix(std::string prefix);
/// A member that is a 64-bit integer, as a string or absent.
int64_t int64_of(const boost::json::object& object, std::string_view key);

class EtcdClient {
 public:
  explicit EtcdClient(EtcdOptions options);
  ~EtcdClient();

  /// Tries each endpoint in turn until one answers; the next call starts with that one. kUnavailable: none answered, and it is unknown
  /// whether one of them executed the call. kNotFound: the lease has ended. kPermissionDenied: wrong user or password, or not this user's
  /// key.
  Result<boost::json::object> call(std::string_view path, const boost::json::object& body);
  /// Calls `look_again` whenever a key with that prefix may have changed: after an event, and each time the watch had to restart. The calls
  /// come on a thread of the watch and do not say which key changed. The watcher reads all keys, and so misses no change in between.
  void watch(const std::string& prefix, std::function<void()> look_again);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace serin::store
