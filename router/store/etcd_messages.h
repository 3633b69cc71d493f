// etcd_messages.h: Requests and answers of etcd's JSON gateway (api/etcdserverpb/rpc.proto).
//
// Bytes are base64, 64-bit integers are strings, and fields that are zero or false are omitted.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace serin::store {

/// One key in the answer of a range request.
struct KeyValue {
  std::string key, value;
  int64_t created = 0, modified = 0, lease = 0;
};
std::vector<KeyValue> read_range(const boost::json::object& answer);
/// The result of the get at `index` of a transaction's failure branch; nothing if that key does not exist.
std::optional<KeyValue> read_response(const boost::json::object& answer, size_t index);
int64_t revision_of(const boost::json::object& answer);
/// Whether the conditions of a transaction were true.
bool succeeded(const boost::json::object& answer);

// Parts of a transaction: the actions ...
boost::json::object put(const std::string& key, const std::string& value, int64_t lease = 0);
boost::json::object get(const std::string& key);
boost::json::object remove(const std::string& key);
boost::json::object remove_range(const std::string& from, const std::string& to);
// ... and their conditions; 0: the key does not exist.
boost::json::object created_is(const std::string& key, int64_t revision);
boost::json::object modified_is(const std::string& key, int64_t revision);
boost::json::object lease_is(const std::string& key, int64_t lease);

}  // namespace serin::store
