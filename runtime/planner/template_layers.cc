#include "runtime/planner/template_layers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "runtime/base/json_quote.h"
#include "runtime/base/number.h"

namespace serin::planner {
namespace {

namespace fs = std::filesystem;

using config::Node;

constexpr size_t kMostFiles = 8, kMostValues = 2000, kMostDepth = 16;

/// A document may name one value many times by aliases, or even a value in itself.
struct Budget {
  size_t values = 0, depth = 0;
};

Status check_size(const Node& node, Budget& budget) {
  budget.values += 1;
  if (budget.values + node.keys().size() + node.items().size() > kMostValues)
    return node.error(fmt::format("more than {} values, of which aliases may repeat some", kMostValues));
  if (budget.depth > kMostDepth) return node.error(fmt::format("more than {} maps and lists in each other", kMostDepth));
  ++budget.depth;
  for (const Node& item : node.items()) SERIN_CHECK(check_size(item, budget));
  for (const std::string& key : node.keys())
    if (const auto inner = node.find(key)) SERIN_CHECK(check_size(*inner, budget));
  --budget.depth;
  return {};
}

Status lay(LayeredValue& below, const Node& above) {
  below.where = above.where();
  if (!above.is_map()) {
    below.node = above;
    below.entries.clear();
    return {};
  }
  below.node.reset();
  std::set<std::string> seen;
  for (const std::string& key : above.keys()) {
    if (key.empty()) return above.error("a key is not a word");
    if (!seen.insert(key).second) return above.error(fmt::format("key '{}' given twice", key));
    if (const auto inner = above.find(key))
      SERIN_CHECK(lay(below.at(key), *inner));
    else
      std::erase_if(below.entries, [&](const LayeredValue::Entry& entry) { return entry.key == key; });
  }
  return {};
}

/// The files from that one down to the lowest.
Result<std::vector<Node>> read_chain(const std::string& file) {
  std::vector<Node> nodes;
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (std::string next = file; !next.empty();) {
    std::error_code unknown;
    const fs::path real = fs::weakly_canonical(next, unknown);
    names.push_back(next);
    if (!seen.insert(unknown ? next : real.string()).second) return invalid(fmt::format("{}: a circle", fmt::join(names, " extends ")));
    if (names.size() > kMostFiles) return invalid(fmt::format("{}: more than {} files", fmt::join(names, " extends "), kMostFiles));
    auto node = Node::load(next);
    if (!node && nodes.empty()) return invalid(node.error().message);
    if (!node) return nodes.back().at("extends")->error(node.error().message);
    if (!node->is_map()) return node->error("must be a map of a template's keys");
    SERIN_TRY(const std::string parent, node->text("extends", ""));
    nodes.push_back(*node);
    next = parent.empty() ? std::string() : (fs::path(next).parent_path() / parent).lexically_normal().string();
  }
  return nodes;
}

bool is_bare(const std::string& word) { return word == "true" || word == "false" || parse_number<double>(word).has_value(); }

void append_flow(std::string& out, const Node& node) {
  if (node.is_map()) {
    const char* comma = "";
    out += '{';
    for (const std::string& key : node.keys()) {
      const auto inner = node.find(key);
      if (!inner) continue;
      out += comma;
      append_json_quoted(out, key);
      out += ": ";
      append_flow(out, *inner);
      comma = ", ";
    }
    out += '}';
    return;
  }
  if (node.is_list()) {
    const char* comma = "";
    out += '[';
    for (const Node& item : node.items()) {
      out += comma;
      append_flow(out, item);
      comma = ", ";
    }
    out += ']';
    return;
  }
  const auto word = node.text();
  if (!word)
    out += "null";
  else if (is_bare(*word))
    out += *word;
  else
    append_json_quoted(out, *word);
}

void append_block(LayeredText& out, const LayeredValue& map, size_t indent) {
  for (const auto& [key, value] : map.entries) {
    out.text.append(indent, ' ');
    const bool plain = std::ranges::all_of(key, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; }) && !is_bare(key);
    if (plain)
      out.text += key;
    else
      append_json_quoted(out.text, key);
    out.text += value.node ? ": " + flow_text(*value.node) + "\n" : value.entries.empty() ? ": {}\n" : ":\n";
    out.origins.push_back(value.where);
    append_block(out, value, indent + 2);
  }
}

}  // namespace

std::string child_path(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

const LayeredValue* LayeredValue::find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &Entry::key);
  return found == entries.end() ? nullptr : &found->value;
}

LayeredValue& LayeredValue::at(std::string_view key) {
  const auto found = std::ranges::find(entries, key, &Entry::key);
  if (found != entries.end()) return found->value;
  entries.push_back({std::string(key), {}});
  entries.back().value.path = child_path(path, key);
  return entries.back().value;
}

Error LayeredValue::error(std::string_view message) const {
  if (node) return node->error(message);
  return invalid(path.empty() ? fmt::format("{}: {}", where, message) : fmt::format("{}: {}: {}", where, path, message));
}

Status lay_over(LayeredValue& below, const Node& above) {
  Budget budget;
  SERIN_CHECK(check_size(above, budget));
  return lay(below, above);
}

Result<Layers::Setting> Layers::parse_setting(const std::string& text) {
  std::vector<std::string> path(1);
  size_t at = 0;
  for (; at < text.size() && text[at] != '='; ++at) {
    if (text[at] == '.') {
      path.emplace_back();
      continue;
    }
    if (text[at] == '\\' && at + 1 < text.size()) ++at;
    path.back() += text[at];
  }
  if (at == text.size() || std::ranges::any_of(path, &std::string::empty) || path.size() > kMostDepth)
    return invalid(fmt::format("--set '{}': must be KEY=VALUE, such as cpu=4 or autoscaling.max=8", text));
  SERIN_TRY(Node value, Node::parse_argument(text.substr(at + 1), "--set " + text.substr(0, at)));
  return Setting{std::move(path), std::move(value)};
}

Status Layers::set(const Setting& setting) {
  LayeredValue* value = &all;
  for (size_t i = 0; i + 1 < setting.path.size(); ++i) {
    value = &value->at(setting.path[i]);
    if (value->node) return setting.value.error(fmt::format("{} of {} is no map", value->path, value->where));
    if (value->where.empty()) value->where = setting.value.where();
  }
  if (setting.value.is_null())
    std::erase_if(value->entries, [&](const LayeredValue::Entry& entry) { return entry.key == setting.path.back(); });
  else
    SERIN_CHECK(lay_over(value->at(setting.path.back()), setting.value));
  return {};
}

Result<Layers> read_layers(const std::string& file, LayeredValue bottom) {
  SERIN_TRY(const std::vector<Node> chain, read_chain(file));
  Layers layers;
  layers.all = std::move(bottom);
  for (auto node = chain.rbegin(); node != chain.rend(); ++node) {
    layers.files.push_back(node->document());
    layers.nodes.push_back(*node);
    SERIN_CHECK(lay_over(layers.all, *node));
  }
  return layers;
}

std::string flow_text(const Node& node) {
  std::string text;
  append_flow(text, node);
  return text;
}

LayeredText block_text(const LayeredValue& map) {
  LayeredText text;
  append_block(text, map, 0);
  return text;
}

}  // namespace serin::planner
