#include "router/store/etcd_messages.h"

#include "router/store/etcd_client.h"
#include "runtime/base/base64.h"

namespace serin::store {

namespace json = boost::json;

namespace {

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? from_base64(value->as_string()) : std::string();
}

json::object compare(const char* target, const char* field, const std::string& key, int64_t revision) {
  return {{"target", target}, {"key", encode_base64(key)}, {"result", "EQUAL"}, {field, std::to_string(revision)}};
}

}  // namespace

std::vector<KeyValue> read_range(const json::object& answer) {
  std::vector<KeyValue> all;
  const json::value* list = answer.if_contains("kvs");
  if (list == nullptr || !list->is_array()) return all;
  for (const json::value& one : list->as_array()) {
    if (!one.is_object()) continue;
    const json::object& kv = one.as_object();
    all.push_back(
        {text_of(kv, "key"), text_of(kv, "value"), int64_of(kv, "create_revision"), int64_of(kv, "mod_revision"), int64_of(kv, "lease")});
  }
  return all;
}

int64_t revision_of(const json::object& answer) {
  const json::value* header = answer.if_contains("header");
  return header != nullptr && header->is_object() ? int64_of(header->as_object(), "revision") : 0;
}

bool succeeded(const json::object& answer) {
  const json::value* value = answer.if_contains("succeeded");
  return value != nullptr && value->is_bool() && value->as_bool();
}

json::object put(const std::string& key, const std::string& value, int64_t lease) {
  json::object request{{"key", encode_base64(key)}, {"value", encode_base64(value)}};
  if (lease != 0) request["lease"] = std::to_string(lease);
  return {{"request_put", std::move(request)}};
}
json::object remove_range(const std::string& from, const std::string& to) {
  return {{"request_delete_range", json::object{{"key", encode_base64(from)}, {"range_end", encode_base64(to)}}}};
}
json::object remove(const std::string& key) { return {{"request_delete_range", json::object{{"key", encode_base64(key)}}}}; }
json::object created_is(const std::string& key, int64_t revision) { return compare("CREATE", "create_revision", key, revision); }
json::object modified_is(const std::string& key, int64_t revision) { return compare("MOD", "mod_revision", key, revision); }
json::object lease_is(const std::string& key, int64_t lease) { return compare("LEASE", "lease", key, lease); }
json::object get(const std::string& key) { return {{"request_range", json::object{{"key", encode_base64(key)}}}}; }

std::optional<KeyValue> read_response(const json::object& answer, size_t index) {
  const json::value* responses = answer.if_contains("responses");
  if (responses == nullptr || !responses->is_array() || index >= responses->as_array().size()) return std::nullopt;
  const json::object* response = responses->as_array()[index].if_object();
  const json::value* range = response == nullptr ? nullptr : response->if_contains("response_range");
  if (range == nullptr || !range->is_object()) return std::nullopt;
  auto found = read_range(range->as_object());
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

}  // namespace serin::store
