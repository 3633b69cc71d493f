// etcd_messages.h: what etcd's JSON gateway is asked and answers (api/etcdserverpb/rpc.proto): bytes as base64, 64-bit integers as strings, what is zero or
// false not at all.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace serin::store {

/// A key of a range's answer.
struct KeyValue {
  std::string key, value;
  int64_t created = 0, modified = 0, lease = 0;
};
std::vector<KeyValue> read_range(const boost::json::object& answer);
/// What the get at `index` of a transaction's failure branch has read; nothing where that key is not there.
std::optional<KeyValue> read_response(const boost::json::object& answer, size_t index);
int64_t revision_of(const boost::json::object& answer);
/// Whether the conditions of a transaction held.
bool succeeded(const boost::json::object& answer);

// Parts of a transaction: what is done ...
boost::json::object put(const std::string& key, const std::string& value, int64_t lease = 0);
boost::json::object get(const std::string& key);
boost::json::object remove(const std::string& key);
boost::json::object remove_range(const std::string& from, const std::string& to);
// ... and under which conditions; 0: the key is not there.
boost::json::object created_is(const std::string& key, int64_t revision);
boost::json::object modified_is(const std::string& key, int64_t revision);
boost::json::object lease_is(const std::string& key, int64_t lease);

}  // namespace serin::store
