// fit.h: whether models fit into a memory, the most of them that would, and the place for them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/planner/catalogue.h"
#include "runtime/planner/planner.h"

namespace serin::planner {

/// Memory that models may take: of a process (a cgroup's limit), or of a device.
struct Room {
  size_t bytes = 0;
  std::string name;                ///< "16.0 GB", "NVIDIA L4": for messages
  const Device* device = nullptr;  ///< null: the process
};

struct Fit {
  size_t needs = 0, has = 0;
  bool fits = false;
  std::optional<int64_t> largest_batch;  ///< none: not even one row fits, or the model takes no batches
  int most_instances = 0;
  std::string smallest;  ///< the smallest card or slice of the catalogue that holds it and that this build runs on; empty: none
  std::string advice;    ///< a sentence if it does not fit: "needs 21.3 GB, NVIDIA L4 has ...: reduce batch to 8"
};

/// Bytes of a device that the models take there: an estimate from the plan for the CPU, since a device's own plan needs the device.
/// `precision`: "fp32", "fp16" ...
size_t device_bytes(const Answer& answer, const std::string& precision);
/// Bytes of the host that the process takes with a device: those of the plan, and the driver with its libraries, whose share is assumed.
size_t host_bytes(const Answer& answer);

/// Plans the same models for another question.
using PlanAgain = std::function<Result<Answer>(const Question&)>;

/// `answer` is that of `question`. Other batches are planned, too.
Result<Fit> fit(const PlanAgain& plan, const Question& question, const Answer& answer, const Room& room, const std::string& precision,
                const Catalogue& catalogue);

/// "resources:" of a container, as YAML.
std::string kubernetes_resources(const Answer& answer, const Device* device, const std::string& smallest);

/// Bytes of "16G", "512Mi" or "123"; nothing if it is none.
std::optional<size_t> parse_bytes(const std::string& text);

}  // namespace serin::planner
