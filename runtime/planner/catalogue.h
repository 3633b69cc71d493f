// catalogue.h: devices that models may be planned for: memory, bandwidth and dense peaks, each with its source (catalogue.yaml).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::planner {

/// A part of a card with memory of its own (NVIDIA MIG).
struct Slice {
  std::string name;  ///< "1g.10gb"
  double memory = 0;
  int of_a_card = 1;  ///< how many a card is divided into
};

struct Device {
  enum class Kind { kGpu, kNpu, kCpu };
  std::string name;                  ///< as the driver, or /proc/cpuinfo, has it
  std::vector<std::string> aliases;  ///< as clouds name it: "nvidia-tesla-t4"
  Kind kind = Kind::kGpu;
  double memory = 0, usable = 0;       ///< bytes; 0 for a CPU
  double bandwidth = 0;                ///< bytes in a second
  std::map<std::string, double> peak;  ///< operations in a second, by precision: "fp32", "int8"
  int cores = 0;                       ///< of a CPU
  std::string architecture;            ///< "sm_90"
  bool runs = true;
  std::string why_not;              ///< if it does not
  std::vector<std::string> labels;  ///< of the user, for soft preferences: "domestic"
  std::vector<Slice> slices;
};

class Catalogue {
 public:
  /// The built-in devices, and those of a file, which replace others of the same name; an empty path adds none. Errors name file, line and
  /// key: a figure without its source, a peak for sparse matrices, memory or bandwidth that no such device has.
  static Result<Catalogue> load(const std::string& extra);

  const std::vector<Device>& devices() const { return devices_; }
  /// By its name or an alias, or by a part of only one name ("A100-SXM4-40GB", "L4"). kNotFound lists the names, and the nearest one.
  Result<const Device*> find(std::string_view name) const;
  /// Every device that the name may mean, as task files write it: "V100-32GB", "RTX_3090", "A100 40G". kNotFound lists the names.
  Result<std::vector<const Device*>> find_all(std::string_view name) const;

 private:
  Status add(const config::Node& root);
  std::vector<Device> devices_;
};

/// catalogue.yaml, compiled in.
std::string_view catalogue_text();

}  // namespace serin::planner
