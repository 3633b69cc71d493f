// manifest.h: the objects with which Kubernetes serves one model, as YAML. The objects are those of deploy/kubernetes. deployment.cc decides the
// numbers, and for templates template_plan.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace serin::planner {

using Words = std::vector<std::pair<std::string, std::string>>;  ///< by name, in the order of their file

struct Toleration {
  std::string key, op, value, effect;  ///< empty: left out
  std::optional<int64_t> seconds;
};

struct VolumeMount {
  std::string volume, path, sub_path;
};

/// Of a HorizontalPodAutoscaler. 0: not by that metric.
struct Autoscaler {
  int least = 1, most = 1;
  int64_t in_flight = 0;
  int cpu_percent = 0;
};

struct Manifest {
  std::vector<std::string> remarks;  ///< lines of comments before the objects
  std::string name;                  ///< of all objects
  std::string image;
  std::vector<std::string> arguments;
  std::string cpu, memory;  ///< quantities, both requested and the limit
  std::string accelerator;  ///< "nvidia.com/gpu"; empty: none
  int accelerators = 1;
  Words labels, annotations, env, node_selector;  ///< in addition to those that it has in any case
  std::vector<Toleration> tolerations;
  std::vector<VolumeMount> mounts = {{"models", "/models", ""}};  ///< of the claim `models` and of `settings`
  std::string settings;                                           ///< serin.yaml, as a ConfigMap of the volume `settings`; empty: none
  bool service = false;                                           ///< with a Service
  int replicas = 1;                                               ///< without an autoscaler
  std::optional<Autoscaler> autoscaler;
};

std::string manifest_text(const Manifest& manifest);

/// "serin-MODEL", with letters that names of objects may have.
std::string object_name(const std::string& model);

}  // namespace serin::planner
