// template_layers.h: maps of several YAML files, laid over each other: base -> domain -> project. Each value keeps the place that it comes from.
//
//   SERIN_TRY(Layers layers, read_layers("project.yaml"));     // `extends: vision.yaml`, which extends base.yaml
//   SERIN_CHECK(layers.set("cpu=4"));                           // the last word
//   layers.all.find("cpu")->where                               // "--set cpu"; "base.yaml:4:6"
//
// Maps are merged key by key. A scalar or a list replaces the value below it, and null removes that. Nothing here knows what keys mean.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::planner {

/// A map, or a scalar or list as its file has it.
struct LayeredValue {
  struct Entry;

  std::optional<config::Node> node;  ///< none: a map
  std::vector<Entry> entries;        ///< of a map, in the order in which layers name them
  std::string path;                  ///< "autoscaling.max"
  std::string where;                 ///< "base.yaml:4:6"; of a map: where the highest layer has it

  const LayeredValue* find(std::string_view key) const;
  LayeredValue& at(std::string_view key);  ///< added if it is not there
  Error error(std::string_view message) const;
};

struct LayeredValue::Entry {
  std::string key;
  LayeredValue value;
};

/// "autoscaling.max": a key of the value at a path, which is empty at the top.
std::string child_path(const std::string& path, std::string_view key);

/// Lays a node over a value. Errors: a key given twice, or more maps and values in each other than any template has (aliases repeat them).
Status lay_over(LayeredValue& below, const config::Node& above);

struct Layers {
  std::vector<std::string> files;   ///< the lowest first
  std::vector<config::Node> nodes;  ///< of the files, for checks of each
  LayeredValue all;

  /// "KEY=VALUE": KEY is a path with dots, in which `\.` is a dot of a name; VALUE is YAML. kInvalidArgument: it is not that.
  struct Setting {
    std::vector<std::string> path;
    config::Node value;
  };
  static Result<Setting> parse_setting(const std::string& text);
  Status set(const Setting& setting);
};

/// The file, and those below it, which `extends` names relative to the file that names it. Errors: a file that cannot be read (naming the one
/// that extends it), a circle or more than 8 files (naming all). `bottom`: what lies below them.
Result<Layers> read_layers(const std::string& file, LayeredValue bottom = {});

/// The text of a leaf on one line, as JSON has it: numbers, true and false stay as they are.
std::string flow_text(const config::Node& node);

/// A map as YAML: a line for each key, and for each line the place that it comes from.
struct LayeredText {
  std::string text;
  std::vector<std::string> origins;
};
LayeredText block_text(const LayeredValue& map);

}  // namespace serin::planner
