// spec_slices.cc: reads and prints the slices of a guard.
//
//   slices: [{name: country, header: x-country}, {name: size, bytes: [4096, 65536]}, {name: digit, label: true}]

#include <fmt/format.h>

#include <algorithm>

#include "router/rollout/alpha_budget.h"
#include "router/rollout/spec_parts.h"

namespace serin::rollout {
namespace {

using config::Node;
using config::Problems;

constexpr size_t kMostSlices = 4;
constexpr int64_t kLargestBound = int64_t{1} << 40;

bool is_slice_name(const std::string& name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 32 && name.find_first_not_of(kAllowed) == std::string::npos;
}

void read_bounds(const Node& node, std::vector<uint64_t>& bounds, Problems& problems) {
  const auto items = node.items();
  if (items.empty() || items.size() >= kMostClasses)
    return problems.add(node.error(fmt::format("must be a list of 1 to {} sizes in bytes", kMostClasses - 1)));
  for (const Node& item : items) {
    uint64_t bound = 0;
    if (!problems.read(bound, item.integer(1, kLargestBound))) continue;
    if (!bounds.empty() && bound <= bounds.back()) problems.add(item.error("must be above the size before it"));
    bounds.push_back(bound);
  }
}

Slice read_slice(const Node& node, Problems& problems) {
  problems.allow_only(node, {"name", "header", "json", "bytes", "label"});
  Slice slice;
  if (!node.is_map()) return slice;
  if (const auto name = node.at("name"); !name)
    problems.add(name.error());
  else if (problems.read(slice.name, name->text()) && !is_slice_name(slice.name))
    problems.add(name->error("must be 1 to 32 letters, digits, dots, underscores and hyphens"));
  const auto header = node.find("header"), json = node.find("json"), bytes = node.find("bytes"), label = node.find("label");
  if (static_cast<int>(header.has_value()) + json.has_value() + bytes.has_value() + label.has_value() != 1)
    problems.add(node.error("must have one of header, json, bytes, label: {name: country, header: x-country}"));
  if (header) read_header(*header, slice.key, problems);
  if (json) {
    slice.by = Slice::By::kJson;
    if (problems.read(slice.key, json->text()) && !is_json_pointer(slice.key))
      problems.add(json->error("must be a JSON pointer such as /parameters/language"));
  }
  if (bytes) {
    slice.by = Slice::By::kBytes;
    read_bounds(*bytes, slice.bounds, problems);
  }
  if (label) {
    slice.by = Slice::By::kLabel;
    bool by_label = true;
    if (problems.read(by_label, node.boolean("label", true)) && !by_label) problems.add(label->error("must be true"));
  }
  return slice;
}

}  // namespace

/// It begins with a slash, and a tilde is followed by 0 or 1.
bool is_json_pointer(std::string_view text) {
  if (text.size() < 2 || text.size() > 1024 || text.front() != '/') return false;
  for (size_t at = text.find('~'); at != std::string_view::npos; at = text.find('~', at + 1))
    if (at + 1 == text.size() || (text[at + 1] != '0' && text[at + 1] != '1')) return false;
  return true;
}

void read_slices(const Node& node, Guard& guard, Problems& problems) {
  const auto entries = node.items();
  if (!node.is_list() || entries.size() > kMostSlices)
    return problems.add(
        node.error(fmt::format("must be a list of at most {} entries such as {{name: country, header: x-country}}", kMostSlices)));
  guard.slices.clear();
  for (const Node& entry : entries) {
    Slice slice = read_slice(entry, problems);
    if (!slice.name.empty() && std::ranges::find(guard.slices, slice.name, &Slice::name) != guard.slices.end())
      problems.add(entry.error(fmt::format("name '{}' given twice", slice.name)));
    if (slice.by == Slice::By::kLabel && std::ranges::find(guard.slices, Slice::By::kLabel, &Slice::by) != guard.slices.end())
      problems.add(entry.error("label given twice"));
    guard.slices.push_back(std::move(slice));
  }
}

std::string print_slices(const std::vector<Slice>& slices) {
  std::string text = slices.empty() ? "" : "  slices:\n";
  for (const Slice& slice : slices) {
    std::string by;
    switch (slice.by) {
      case Slice::By::kHeader: by = "header: " + in_quotes(slice.key); break;
      case Slice::By::kJson: by = "json: " + in_quotes(slice.key); break;
      case Slice::By::kBytes: by = fmt::format("bytes: [{}]", fmt::join(slice.bounds, ", ")); break;
      case Slice::By::kLabel: by = "label: true"; break;
    }
    text += fmt::format("    - {{name: {}, {}}}\n", in_quotes(slice.name), by);
  }
  return text;
}

}  // namespace serin::rollout
