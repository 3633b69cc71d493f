// config.h: a YAML (or JSON) document whose every complaint says file, line and column.
//
//   SERIN_TRY(config::Node root, config::Node::load("router.yaml"));
//   SERIN_CHECK(root.allow_only({"listen", "admin", "services"}));       // router.yaml:14:7: unknown key 'treshold' under guard; allowed: ...
//   SERIN_TRY(const int64_t limit, root.integer("queue_limit", 1, 100000, 256));
//
// The typed getters by key return the default where the key is absent, and an error where the value is not of that kind or out of range.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::config {

class Node {
 public:
  /// Errors: kNotFound (no such file), kInvalidArgument (not YAML; the line says where). Documents over 1 MiB are refused.
  static Result<Node> load(const std::string& path);
  /// `name` stands where a file name would in messages, e.g. "request body".
  static Result<Node> parse(std::string_view text, std::string name);
  /// The documents of a stream (divided by lines of three dashes); empty ones are left out.
  static Result<std::vector<Node>> parse_all(std::string_view text, std::string name);

  bool is_map() const;
  bool is_list() const;
  bool is_scalar() const;
  bool is_null() const;

  /// Refuses keys outside the list and keys given twice. Requires a map (an empty document counts as an empty map).
  Status allow_only(std::initializer_list<std::string_view> keys) const;
  /// The same, every one of them; what is in `silently` is let through and not named as allowed.
  std::vector<Error> refused_keys(std::initializer_list<std::string_view> keys,
                                  std::initializer_list<std::string_view> silently = {}) const;

  bool has(std::string_view key) const;
  std::optional<Node> find(std::string_view key) const;  ///< absent or null: nothing
  Result<Node> at(std::string_view key) const;           ///< absent: an error that names the key
  std::vector<std::string> keys() const;                 ///< of a map, in file order
  std::vector<Node> items() const;                       ///< of a list; empty otherwise

  // This node as a scalar.
  Result<std::string> text() const;
  Result<int64_t> integer(int64_t min, int64_t max) const;
  Result<double> number(double min, double max) const;
  Result<bool> boolean() const;
  Result<double> fraction() const;                    ///< "1%" or 0.01; 0..1
  Result<std::chrono::nanoseconds> duration() const;  ///< "500us", "50ms", "2s", "10m", "1h"; not negative
  Result<std::string> one_of(std::initializer_list<std::string_view> words) const;

  // The value under a key of this map, or the default.
  Result<std::string> text(std::string_view key, std::string fallback) const;
  Result<int64_t> integer(std::string_view key, int64_t min, int64_t max, int64_t fallback) const;
  Result<double> number(std::string_view key, double min, double max, double fallback) const;
  Result<bool> boolean(std::string_view key, bool fallback) const;
  Result<double> fraction(std::string_view key, double fallback) const;
  Result<std::chrono::nanoseconds> duration(std::string_view key, std::chrono::nanoseconds fallback) const;

  /// An error at this node: "router.yaml:14:7: guard.errors: MESSAGE".
  Error error(std::string_view message) const;
  /// Dotted path from the root: "services[0].guard"; empty at the root.
  const std::string& path() const { return path_; }

 private:
  struct Yaml;
  Node(std::shared_ptr<const Yaml> yaml, std::shared_ptr<const std::string> file, std::string path);
  std::shared_ptr<const Yaml> yaml_;
  std::shared_ptr<const std::string> file_;
  std::string path_;
};

/// What is wrong with a document, for readers that say everything at once instead of the first thing.
///
///   problems.allow_only(node, {"max", "slack"});
///   problems.read(guard.slack, node.fraction("slack", guard.slack));     // what cannot be read stays as it is
class Problems {
 public:
  static constexpr size_t kMost = 100;  ///< a document of nonsense is not worth more lines

  void add(Error error) {
    if (all_.size() < kMost) all_.push_back(std::move(error));
  }
  /// False: it was an error.
  bool check(const Status& status) {
    if (!status) add(status.error());
    return status.has_value();
  }
  template <class T, class U>
  bool read(T& value, Result<U> result) {
    const bool good = result.has_value();
    if (good)
      value = *std::move(result);
    else
      add(std::move(result).error());
    return good;
  }
  void allow_only(const Node& node, std::initializer_list<std::string_view> keys) {
    for (Error& error : node.refused_keys(keys)) add(std::move(error));
  }
  const std::vector<Error>& all() const { return all_; }
  /// The first, and how many there are beside it.
  Status first() const;

 private:
  std::vector<Error> all_;
};

/// "50ms" -> 50 ms; nothing where it is not a duration. Units: ns us ms s m h; a bare number is refused, except 0.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);
/// "1%", "0.5 %" or "0.01" -> 0.01; nothing where it is not a fraction in 0..1.
std::optional<double> parse_fraction(std::string_view text);
/// 50 ms -> "50ms": the shortest exact spelling.
std::string print_duration(std::chrono::nanoseconds duration);

}  // namespace serin::config
