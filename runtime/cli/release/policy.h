// policy.h: release.yaml: what a version must show before it is given all requests, and where everything is.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "router/rollout/spec.h"
#include "runtime/base/result.h"
#include "runtime/cli/offline/eval_flags.h"
#include "runtime/cli/release/release_notify.h"

namespace serin::cli {

/// A place for one version: a version of router.yaml, a tag of the registry that its runtimes follow, and these runtimes.
struct Slot {
  std::string name;
  std::vector<std::string> runtimes;  ///< "http://127.0.0.1:8000"
};

/// Of `serin eval`; the names are those of its flags.
struct EvalPolicy : EvalFlags {
  std::string slice, no_worse_by, training;
  std::vector<std::string> metrics, require, map;
  double confidence = 0.95;
  bool latency = false, skip_faults = false;
};

struct ReleasePolicy {
  std::string text;      ///< of the file
  std::string registry;  ///< folder
  std::string model;     ///< name in the registry and on the runtimes; empty: that of the service
  std::string data;      ///< for the evaluation; empty: none is named
  std::string production = "production";
  std::vector<Slot> slots;  ///< two
  std::string cases;        ///< folder of stored inputs and outputs; empty: the model runs on made-up inputs
  bool same_contract = true;
  std::string memory, device;  ///< that it must fit; empty: it is only planned
  int64_t instances = 0;       ///< 0: as `serin plan` has them
  std::optional<EvalPolicy> eval;
  std::vector<Receiver> notify;
  std::chrono::nanoseconds load_timeout{std::chrono::minutes(2)}, timeout{std::chrono::hours(6)};
  std::string rules;     ///< part of the rollout's document, as YAML; may be empty
  rollout::Spec parsed;  ///< the same, without service and versions
};

/// The part of a policy that may stand on the command line.
struct PolicyFlags {
  std::string registry;
  std::vector<Slot> slots;
  bool partial = false;  ///< registry and slots may be absent: nothing is released
};

/// "blue=http://127.0.0.1:8000,http://127.0.0.1:8001"
Result<Slot> parse_slot(const std::string& text);

/// Paths in the file are relative to its folder. An empty path: everything is on the command line. kInvalidArgument: the first fault with its
/// line, and the number of others; a key that a flag contradicts.
Result<ReleasePolicy> read_policy(const std::string& path, const PolicyFlags& flags);
/// The same of a text.
Result<ReleasePolicy> parse_policy(const std::string& text, const std::string& path, const PolicyFlags& flags);

}  // namespace serin::cli
