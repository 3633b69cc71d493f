// task.h: a task file: which model is to be served, under which policy, and for which load.
//
//   model: models/digits                      # or as an argument of the command
//   task: {type: inference, sequence_length: 512, batch_size_per_gpu: 16}
//   resource_policy: {memory_threshold: 0.85, preferred_devices: [A100-SXM4-40GB, RTX_3090], allow_mixed_precision: true}
//   demand: {rps: 300, slo: "p99<=50ms"}
//
// Files that were written for other planners are taken as they are. Every key is honoured, or `notes` says why it is not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/planner/catalogue.h"
#include "runtime/planner/slo.h"

namespace serin::planner {

/// The most that a tenant's models may take together. An absent one is not limited.
struct Quota {
  std::optional<int> devices;         ///< cards, or slices of them
  std::optional<double> cores;        ///< of hosts
  std::optional<double> memory;       ///< bytes of hosts
  std::optional<double> hourly_cost;  ///< in the currency of the prices
};

/// Reads `tenants: {NAME: {devices: 4, cores: 64, memory: 256Gi, hourly_cost: 12}}`.
Result<std::map<std::string, Quota>> read_quotas(const config::Node& tenants);

/// Where a model may run, and which places come first.
struct Policy {
  double memory_threshold = 1;                        ///< the part of a memory that may be planned
  std::vector<std::vector<const Device*>> preferred;  ///< by rank; a name may mean several cards. Others come after them
  std::vector<std::string> prefer;                    ///< labels of devices, or words of their names: of places that hold, these come first
  std::optional<bool> mixed_precision;                ///< whether cards may compute in tf32, fp16 and bf16
  std::string precision;                              ///< the only one; empty: any that mixed_precision permits
  std::optional<int> most_replicas;
  std::string tenant;
  std::optional<Quota> quota;  ///< of that tenant

  /// The lower, the sooner; places that are not preferred have the highest. `device`: null for this machine's CPU.
  size_t rank(const Device* device) const;
  bool prefers(const Device* device) const;
};

struct Demand {
  double rps = 0;  ///< requests of one row each second; 0: one replica is asked for
  std::vector<Slo> slos;

  double strictest_share() const;  ///< the largest of the SLOs' shares; 0.99 without one
};

/// A key of the file that has no effect, or another one than its name says.
struct Note {
  std::string key, text;
};

struct Task {
  std::vector<std::string> models;  ///< paths; relative ones are relative to the file's folder
  std::string model_name;           ///< of several models in a folder, this one
  std::optional<int64_t> length;    ///< of a sequence
  std::optional<int64_t> batch;
  Policy policy;
  Demand demand;
  std::string prices;   ///< a path; empty: none
  double timeout = 60;  ///< seconds that the solver may take
  std::vector<Note> notes;
};

/// Errors name file, line and key: unknown keys with the nearest known one, values out of range, keys that contradict each other.
Result<Task> read_task(const std::string& path, const Catalogue& catalogue);

/// The same of a node. `folder`: of relative paths. `in_fleet`: it is an item of a fleet file, which has more keys, and the tenants.
Result<Task> read_task(const config::Node& root, const std::string& folder, const Catalogue& catalogue, bool in_fleet = false);

}  // namespace serin::planner
