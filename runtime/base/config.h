// config.h: reads a YAML or JSON document and reports every error with file, line and column.
//
//   SERIN_TRY(config::Node root, config::Node::load("router.yaml"));
//   SERIN_CHECK(root.allow_only({"listen", "admin", "services"}));
//     // router.yaml:14:7: unknown key 'treshold' under guard; allowed: ...
//   SERIN_TRY(const int64_t limit, root.integer("queue_limit", 1, 100000, 256));
//
// The typed getters by key return the default if the key is absent. They return an error if the value has another type or is out of range.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::config {

class Node {
 public:
  /// Errors: kNotFound (no such file), kInvalidArgument (not YAML; the message gives the line). Documents over 1 MiB are refused.
  static Result<Node> load(const std::string& path);
  /// `name` replaces the file name in messages, for example "request body".
  static Result<Node> parse(std::string_view text, std::string name);
  /// Returns the documents of a stream (separated by lines of three dashes), without the empty ones.
  static Result<std::vector<Node>> parse_all(std::string_view text, std::string name);
  /// A value of a command line. Messages give `name` ("--set memory") without line and column.
  static Result<Node> parse_argument(std::string_view text, std::string name);

  bool is_map() const;
  bool is_list() const;
  bool is_scalar() const;
  bool is_quoted() const;  ///< a scalar in quotes: the text "3" and not the number 3
  bool is_null() const;

  /// Refuses keys that are not in the list and duplicate keys. Requires a map (an empty document counts as an empty map).
  Status allow_only(std::initializer_list<std::string_view> keys) const;
  /// The same check, but returns every refused key. Keys in `silently` are accepted and are not named as allowed.
  std::vector<Error> refused_keys(std::initializer_list<std::string_view> keys,
                                  std::initializer_list<std::string_view> silently = {}) const;

  bool has(std::string_view key) const;
  std::optional<Node> find(std::string_view key) const;  ///< nothing if absent or null
  Result<Node> at(std::string_view key) const;           ///< if absent, an error that names the key
  std::vector<std::string> keys() const;                 ///< keys of a map, in file order
  std::vector<Node> items() const;                       ///< items of a list; otherwise empty

  // These read this node as a scalar.
  Result<std::string> text() const;
  Result<int64_t> integer(int64_t min, int64_t max) const;
  Result<double> number(double min, double max) const;
  Result<bool> boolean() const;
  Result<double> fraction() const;                    ///< "1%" or 0.01; from 0 to 1
  Result<std::chrono::nanoseconds> duration() const;  ///< "500us", "50ms", "2s", "10m", "1h"; not negative
  Result<std::string> one_of(std::initializer_list<std::string_view> words) const;
  Result<std::string> one_of(std::span<const std::string_view> words) const;

  // These return the value of a key of this map, or the default.
  Result<std::string> text(std::string_view key, std::string fallback) const;
  Result<int64_t> integer(std::string_view key, int64_t min, int64_t max, int64_t fallback) const;
  Result<double> number(std::string_view key, double min, double max, double fallback) const;
  Result<bool> boolean(std::string_view key, bool fallback) const;
  Result<double> fraction(std::string_view key, double fallback) const;
  Result<std::chrono::nanoseconds> duration(std::string_view key, std::chrono::nanoseconds fallback) const;

  /// This node as a document of its own, in YAML.
  std::string yaml() const;

  /// "router.yaml:14:7"; the name alone for an argument.
  std::string where() const;
  /// The name of the document: for a file its path.
  const std::string& document() const { return *file_; }
  /// Returns an error at this node: "router.yaml:14:7: guard.errors: MESSAGE".
  Error error(std::string_view message) const;
  /// Dotted path from the root, for example "services[0].guard"; empty at the root.
  const std::string& path() const { return path_; }

 private:
  struct Yaml;
  Node(std::shared_ptr<const Yaml> yaml, std::shared_ptr<const std::string> file, std::string path);
  std::shared_ptr<const Yaml> yaml_;
  std::shared_ptr<const std::string> file_;
  std::string path_;
};

/// Collects all errors of a document, for readers that report every error and not only the first.
///
///   problems.allow_only(node, {"max", "slack"});
///   problems.read(guard.slack, node.fraction("slack", guard.slack));     // a value that cannot be read stays unchanged
class Problems {
 public:
  static constexpr size_t kMost = 100;  ///< an invalid document needs no more lines than this

  void add(Error error) {
    if (all_.size() < kMost) all_.push_back(std::move(error));
  }
  /// Returns false if `status` was an error.
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
  /// Returns the first error and the number of further errors.
  Status first() const;

 private:
  std::vector<Error> all_;
};

/// Parses "50ms" as 50 ms; returns nothing if the text is no duration. Units: ns us ms s m h. A bare number is refused, except 0.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);
/// Parses "1%", "0.5 %" or "0.01" as a fraction; returns nothing if the text is no fraction from 0 to 1.
std::optional<double> parse_fraction(std::string_view text);
/// Prints 50 ms as "50ms": the shortest exact spelling.
std::string print_duration(std::chrono::nanoseconds duration);

}  // namespace serin::config
