// template.h: resources and settings for models of one kind, as a platform team writes them once: base -> domain -> project.
//
//   extends: vision.yaml
//   image: registry.example.com/serin:0.1.0
//   memory: 2Gi
//   autoscaling: {min: 2, max: 8}
//   settings: {max_batch: 16}               # of serin.yaml
//
// README.md lists the keys. Values that no layer has are the plan's.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/planner/manifest.h"
#include "runtime/planner/task.h"
#include "runtime/planner/template_layers.h"

namespace serin::planner {

/// Which models a template is for. Each condition must hold.
struct Conditions {
  std::string name;                    ///< a pattern: "invoice-*"; empty: any
  std::vector<std::string> formats;    ///< one of these; empty: any
  std::vector<std::string> inputs;     ///< the same of kinds of inputs
  std::vector<std::string> operators;  ///< all of these
  std::optional<int64_t> least, most;  ///< parameters
  size_t count() const;                ///< of conditions
};

/// A value, and the place that it comes from.
template <class T>
using Given = std::optional<std::pair<T, std::string>>;

struct Template {
  Layers layers;
  std::optional<Conditions> applies_to;  ///< none: only a layer of others
  std::string model;                     ///< a path; empty: none
  std::string name, image, device;
  Given<double> cpu;                  ///< cores
  Given<size_t> memory;               ///< bytes
  std::string memory_text, cpu_text;  ///< as they are written
  std::optional<int> gpu_count;
  Given<int> replicas;
  struct Autoscaling {
    Given<int> least, most;
    std::optional<int> in_flight, cpu_percent;
    std::string where;
  };
  std::optional<Autoscaling> autoscaling;
  Demand demand;
  Words labels, annotations, env, node_selector;
  std::vector<Toleration> tolerations;
  std::vector<std::string> args;
  struct Smoke {
    std::string data;  ///< a folder for `serin check`; empty: that of the model, if it has one
    std::optional<double> rtol, atol;
  };
  std::optional<Smoke> smoke;
  std::vector<Note> notes;

  const std::string& file() const { return layers.files.back(); }
  const LayeredValue* settings() const { return layers.all.find("settings"); }
};

/// Reads a template with the layers below it, and lays `sets` ("KEY=VALUE") over it. `own`: the model's serin.yaml, which lies below all
/// settings; null: it has none. Errors name the place of the value: unknown keys with the nearest known one, values of a wrong type or out of
/// range, an image without a version.
Result<Template> read_template(const std::string& file, const std::vector<std::string>& sets, const config::Node* own = nullptr);

}  // namespace serin::planner
