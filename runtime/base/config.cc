// config.cc: reads YAML through yaml-cpp, which no other file includes.
//
// yaml-cpp reports positions (zero-based) for every node, keeps duplicate keys in iteration order, and throws only while parsing.

#include "runtime/base/config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/base/file.h"
#include "runtime/base/json_as_yaml.h"
#include "runtime/base/number.h"
#include "runtime/base/utf8.h"

namespace serin::config {
namespace {

constexpr size_t kLargestDocument = 1 << 20;

std::string join(std::span<const std::string_view> words) { return fmt::format("{}", fmt::join(words, ", ")); }

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Error not_yaml(const std::string& name, const YAML::Exception& e) {
  return {Code::kInvalidArgument, fmt::format("{}:{}:{}: not YAML: {}", name, e.mark.line + 1, e.mark.column + 1, e.msg)};
}

/// What is wrong with a document before anybody parses it. yaml-cpp passes on bytes that are no text, and JSON that holds them is none.
Status check_text(std::string_view text, const std::string& name) {
  if (text.size() > kLargestDocument) return Error{Code::kTooLarge, fmt::format("{}: larger than {} bytes", name, kLargestDocument)};
  if (!is_utf8(text)) return Error{Code::kInvalidArgument, fmt::format("{}: is not UTF-8", name)};
  return {};
}

YAML::Node load_yaml(std::string_view text) {
  try {
    return YAML::Load(std::string(text));
  } catch (const YAML::Exception&) {
    const auto json = json_as_yaml(text);
    if (!json) throw;
    return YAML::Load(*json);
  }
}

}  // namespace

struct Node::Yaml {
  YAML::Node node;
  bool in_a_file = true;  ///< so that its position says something
};

Node::Node(std::shared_ptr<const Yaml> yaml, std::shared_ptr<const std::string> file, std::string path)
    : yaml_(std::move(yaml)), file_(std::move(file)), path_(std::move(path)) {}

Result<Node> Node::load(const std::string& path) {
  SERIN_TRY(const std::string text, read_file(path, kLargestDocument));
  return parse(text, path);
}

Result<Node> Node::parse(std::string_view text, std::string name) {
  SERIN_CHECK(check_text(text, name));
  try {
    auto yaml = std::make_shared<const Yaml>(Yaml{load_yaml(text)});
    return Node(std::move(yaml), std::make_shared<const std::string>(std::move(name)), "");
  } catch (const YAML::Exception& e) {
    return not_yaml(name, e);
  }
}

Result<std::vector<Node>> Node::parse_all(std::string_view text, std::string name) {
  SERIN_CHECK(check_text(text, name));
  const auto file = std::make_shared<const std::string>(std::move(name));
  try {
    std::vector<Node> nodes;
    for (const YAML::Node& yaml : YAML::LoadAll(std::string(text)))
      if (yaml.IsDefined() && !yaml.IsNull()) nodes.push_back(Node(std::make_shared<const Yaml>(Yaml{yaml}), file, ""));
    return nodes;
  } catch (const YAML::Exception& e) {
    return not_yaml(*file, e);
  }
}

Result<Node> Node::parse_argument(std::string_view text, std::string name) {
  SERIN_CHECK(check_text(text, name));
  try {
    auto yaml = std::make_shared<const Yaml>(Yaml{load_yaml(text), false});
    return Node(std::move(yaml), std::make_shared<const std::string>(std::move(name)), "");
  } catch (const YAML::Exception& e) {
    return Error{Code::kInvalidArgument, fmt::format("{}: not YAML: {}", name, e.msg)};
  }
}

bool Node::is_map() const { return yaml_->node.IsMap(); }
bool Node::is_list() const { return yaml_->node.IsSequence(); }
bool Node::is_scalar() const { return yaml_->node.IsScalar(); }
bool Node::is_quoted() const { return is_scalar() && yaml_->node.Tag() == "!"; }
bool Node::is_null() const { return !yaml_->node.IsDefined() || yaml_->node.IsNull(); }

std::string Node::where() const {
  const YAML::Mark mark = yaml_->node.Mark();
  return mark.is_null() || !yaml_->in_a_file ? *file_ : fmt::format("{}:{}:{}", *file_, mark.line + 1, mark.column + 1);
}

Error Node::error(std::string_view message) const {
  return Error{Code::kInvalidArgument,
               path_.empty() ? fmt::format("{}: {}", where(), message) : fmt::format("{}: {}: {}", where(), path_, message)};
}

Status Node::allow_only(std::initializer_list<std::string_view> keys) const {
  auto refused = refused_keys(keys);
  return refused.empty() ? Status() : std::move(refused.front());
}

std::vector<Error> Node::refused_keys(std::initializer_list<std::string_view> keys,
                                      std::initializer_list<std::string_view> silently) const {
  if (is_null()) return {};
  if (!is_map()) return {error("must be a map with the keys " + join(std::span(keys.begin(), keys.size())))};
  std::vector<Error> refused;
  std::set<std::string> seen;
  for (const auto& entry : yaml_->node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "(not a word)";
    const YAML::Mark mark = entry.first.Mark();
    const std::string where = yaml_->in_a_file ? fmt::format("{}:{}:{}", *file_, mark.line + 1, mark.column + 1) : *file_;
    const std::string under = path_.empty() ? "" : " under " + path_;
    if (std::ranges::find(keys, std::string_view(key)) == keys.end() &&
        std::ranges::find(silently, std::string_view(key)) == silently.end())
      refused.push_back({Code::kInvalidArgument, fmt::format("{}: unknown key '{}'{}; allowed: {}", where, key, under,
                                                             join(std::span(keys.begin(), keys.size())))});
    else if (!seen.insert(key).second)
      refused.push_back({Code::kInvalidArgument, fmt::format("{}: key '{}' given twice{}", where, key, under)});
  }
  return refused;
}

Status Problems::first() const {
  if (all_.empty()) return {};
  if (all_.size() == 1) return all_.front();
  return Error{all_.front().code, fmt::format("{} (and {} more)", all_.front().message, all_.size() - 1)};
}

std::optional<Node> Node::find(std::string_view key) const {
  if (!is_map()) return std::nullopt;
  for (const auto& entry : yaml_->node) {
    if (!entry.first.IsScalar() || entry.first.Scalar() != key || entry.second.IsNull()) continue;
    return Node(std::make_shared<const Yaml>(Yaml{entry.second, yaml_->in_a_file}), file_,
                path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key));
  }
  return std::nullopt;
}

bool Node::has(std::string_view key) const { return find(key).has_value(); }

Result<Node> Node::at(std::string_view key) const {
  if (auto node = find(key)) return *std::move(node);
  return error(fmt::format("key '{}' is missing", key));
}

std::vector<std::string> Node::keys() const {
  std::vector<std::string> names;
  if (!is_map()) return names;
  for (const auto& entry : yaml_->node) names.push_back(entry.first.IsScalar() ? entry.first.Scalar() : "");
  return names;
}

std::vector<Node> Node::items() const {
  std::vector<Node> nodes;
  if (!is_list()) return nodes;
  for (const auto& item : yaml_->node)
    nodes.push_back(Node(std::make_shared<const Yaml>(Yaml{item, yaml_->in_a_file}), file_, fmt::format("{}[{}]", path_, nodes.size())));
  return nodes;
}

std::string Node::yaml() const { return YAML::Dump(yaml_->node); }

Result<std::string> Node::text() const {
  if (!is_scalar()) return error("must be a word or a text");
  return yaml_->node.Scalar();
}

Result<int64_t> Node::integer(int64_t min, int64_t max) const {
  const std::string word = is_scalar() ? yaml_->node.Scalar() : "";
  const auto value = parse_number<int64_t>(word);
  if (!value || *value < min || *value > max)
    return error(fmt::format("must be a whole number from {} to {}{}", min, max, word.empty() ? "" : ", not '" + word + "'"));
  return *value;
}

Result<double> Node::number(double min, double max) const {
  const std::string word = is_scalar() ? yaml_->node.Scalar() : "";
  const auto value = parse_number<double>(word);
  if (!value || *value < min || *value > max)
    return error(fmt::format("must be a number from {} to {}{}", min, max, word.empty() ? "" : ", not '" + word + "'"));
  return *value;
}

Result<bool> Node::boolean() const {
  const std::string word = is_scalar() ? yaml_->node.Scalar() : "";
  if (word == "true") return true;
  if (word == "false") return false;
  return error("must be true or false");
}

Result<double> Node::fraction() const {
  const auto value = is_scalar() ? parse_fraction(yaml_->node.Scalar()) : std::nullopt;
  if (!value) return error("must be a fraction such as 1% or 0.01, from 0 to 1");
  return *value;
}

Result<std::chrono::nanoseconds> Node::duration() const {
  const auto value = is_scalar() ? parse_duration(yaml_->node.Scalar()) : std::nullopt;
  if (!value) return error("must be a duration with a unit: 500us, 50ms, 2s, 10m or 1h");
  return *value;
}

Result<std::string> Node::one_of(std::initializer_list<std::string_view> words) const {
  return one_of(std::span(words.begin(), words.size()));
}

Result<std::string> Node::one_of(std::span<const std::string_view> words) const {
  std::string word = is_scalar() ? yaml_->node.Scalar() : "";
  if (std::ranges::find(words, std::string_view(word)) == words.end())
    return error("must be one of " + join(words) + (word.empty() ? "" : ", not '" + word + "'"));
  return word;
}

Result<std::string> Node::text(std::string_view key, std::string fallback) const {
  const auto node = find(key);
  return node ? node->text() : Result<std::string>(std::move(fallback));
}
Result<int64_t> Node::integer(std::string_view key, int64_t min, int64_t max, int64_t fallback) const {
  const auto node = find(key);
  return node ? node->integer(min, max) : Result<int64_t>(fallback);
}
Result<double> Node::number(std::string_view key, double min, double max, double fallback) const {
  const auto node = find(key);
  return node ? node->number(min, max) : Result<double>(fallback);
}
Result<bool> Node::boolean(std::string_view key, bool fallback) const {
  const auto node = find(key);
  return node ? node->boolean() : Result<bool>(fallback);
}
Result<double> Node::fraction(std::string_view key, double fallback) const {
  const auto node = find(key);
  return node ? node->fraction() : Result<double>(fallback);
}
Result<std::chrono::nanoseconds> Node::duration(std::string_view key, std::chrono::nanoseconds fallback) const {
  const auto node = find(key);
  return node ? node->duration() : Result<std::chrono::nanoseconds>(fallback);
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  text = trim(text);
  if (text == "0") return std::chrono::nanoseconds(0);
  const size_t digits = text.find_first_not_of("0123456789.");
  if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
  const auto value = parse_number<double>(text.substr(0, digits));
  if (!value) return std::nullopt;
  const std::string_view unit = trim(text.substr(digits));
  const double scale = unit == "ns"   ? 1
                       : unit == "us" ? 1e3
                       : unit == "ms" ? 1e6
                       : unit == "s"  ? 1e9
                       : unit == "m"  ? 60e9
                       : unit == "h"  ? 3600e9
                                      : 0;
  const double nanoseconds = *value * scale;
  if (scale == 0 || nanoseconds > 9e18) return std::nullopt;
  return std::chrono::nanoseconds(static_cast<int64_t>(std::llround(nanoseconds)));
}

std::optional<double> parse_fraction(std::string_view text) {
  text = trim(text);
  const bool percent = text.ends_with('%');
  if (percent) text = trim(text.substr(0, text.size() - 1));
  const auto value = parse_number<double>(text);
  if (!value) return std::nullopt;
  const double fraction = percent ? *value / 100 : *value;
  if (fraction < 0 || fraction > 1) return std::nullopt;
  return fraction;
}

std::string print_duration(std::chrono::nanoseconds duration) {
  const int64_t n = duration.count();
  struct Unit {
    int64_t scale;
    const char* name;
  };
  for (const Unit unit :
       {Unit{3'600'000'000'000, "h"}, Unit{60'000'000'000, "m"}, Unit{1'000'000'000, "s"}, Unit{1'000'000, "ms"}, Unit{1'000, "us"}})
    if (n != 0 && n % unit.scale == 0) return fmt::format("{}{}", n / unit.scale, unit.name);
  return n == 0 ? "0" : fmt::format("{}ns", n);
}

}  // namespace serin::config
