// spec.h: The rollout specification. parse_spec() reads it from YAML or JSON (a document of kind Rollout).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::rollout {

inline constexpr uint32_t kAll = 1'000'000;  ///< 100 % in parts per million
/// shadow: auto: at most this part of stable's requests, and less where the canary has no time to spare (proxy/spare_time.h).
inline constexpr uint32_t kAutoShadowPpm = 100'000;
inline constexpr size_t kLongestRevision = 200;

struct Step {
  uint32_t weight_ppm = 0;  ///< {setWeight: 5}; 0 with shadow_ppm: a shadow step
  uint32_t shadow_ppm = 0;  ///< {shadow: {percent: 10}}: share of stable's requests mirrored
  uint32_t replay = 0;      ///< {shadow: {percent: 10, replay: 500}}: so many recorded requests are sent to both arms first
  enum class Until : uint8_t { kCertified, kDuration, kManual } until = Until::kCertified;
  std::chrono::nanoseconds duration{0};  ///< if until is kDuration

  bool is_shadow() const { return shadow_ppm > 0; }
  bool is_pause() const { return shadow_ppm == 0 && weight_ppm == 0; }  ///< {pause: {}}: the weight does not change
};

struct LatencyThreshold {
  double quantile = 0.99;
  std::chrono::nanoseconds limit{0};
};

/// A user's own Prometheus query. It is outside falseRollback: its answer is trusted.
struct PrometheusGuard {
  std::string name;
  std::string address;  ///< http://host:9090
  std::string query;    ///< PromQL whose answer is one number
  double max = 0;       ///< above it, `breaches` times in a row: rolled back
  std::chrono::nanoseconds interval{std::chrono::seconds(15)};
  int breaches = 3;
};

/// A metric of the service's `outcomes` that must not be worse on the canary by more than `margin`, in the metric's own unit.
struct OutcomeLimit {
  std::string metric;
  double margin = 0;
};

/// A division of the requests into classes, each of which is judged by itself as well (slice_guards.h).
struct Slice {
  enum class By : uint8_t {
    kHeader,  ///< the value of a header
    kJson,    ///< the text, number or boolean at a place of a JSON body
    kBytes,   ///< the size of the body, between bounds
    kLabel    ///< the label that stable gave, of mirrored requests only
  } by = By::kHeader;
  std::string name;
  std::string key;               ///< kHeader: its name; kJson: the place, as a JSON pointer (RFC 6901)
  std::vector<uint64_t> bounds;  ///< kBytes: they rise
};

/// The resources of the endpoints, by their own metrics: the router asks them during a rollout. An empty name is not judged.
struct ResourceGuard {
  bool on = true;
  std::string path = "/metrics";
  uint16_t port = 0;  ///< 0: that of the endpoint
  std::chrono::nanoseconds interval{std::chrono::seconds(5)};
  std::string memory = "process_resident_memory_bytes", descriptors = "process_open_fds", gpu = "nv_gpu_memory_used_bytes",
              cpu = "process_cpu_seconds_total";
  std::string requests;  ///< counter of the requests that the endpoint got; empty: the router's own count
  std::optional<double> memory_limit, descriptor_limit, gpu_limit;
  double cpu_ratio = 1.5;                                    ///< more than so many times stable's CPU time for an answer is not tolerated
  std::chrono::nanoseconds horizon{std::chrono::hours(24)};  ///< a leak that meets its limit later does not count
};

struct Guard {
  double false_rollback = 0.001;              ///< alpha: the chance of ever rolling back a healthy canary
  std::optional<double> errors_max;           ///< errors: {max: 1%}: a threshold set by the user
  double tolerate_ratio = 1.0;                ///< rho0
  std::vector<LatencyThreshold> latency_max;  ///< latency: {p50|p90|p95|p99|p99.9: 50ms}
  double latency_slack = 0.10;
  std::chrono::nanoseconds latency_floor{5'000'000};
  std::optional<std::chrono::nanoseconds> deadline;  ///< D: a request still in flight after this time is a bad event
  uint64_t latency_baseline = 10'000;                ///< stable's answers that the limits are learned from; rougher ones come earlier
  uint64_t latency_skip = 5;                         ///< first answers of each canary endpoint that are not judged on latency: it is cold
  enum class Compare : uint8_t { kLabel, kValues, kOff } compare = Compare::kLabel;
  std::string output;  ///< name of the output compared; empty: the first
  double max_disagreement = 0.10;
  bool judge_few = true;            ///< maxDisagreement: auto: also "wrong for a few" (few_guard.h)
  double rtol = 1e-3, atol = 1e-5;  ///< if compare is kValues
  /// output: {shadow: 10%}: also mirrored during weight steps; nothing: auto, as much as costs nothing.
  std::optional<uint32_t> shadow_ppm;
  /// Factor by which a label or an extreme score may be more or less frequent than stable's; 0: not judged.
  double drift = 4;
  enum class Breach : uint8_t { kHold, kRollback } when_stable_breaches_too = Breach::kHold;
  /// Always the key if the rollout is sticky.
  enum class Unit : uint8_t { kBatch, kRequest, kKey } unit = Unit::kBatch;
  std::vector<PrometheusGuard> prometheus;
  std::vector<OutcomeLimit> outcomes;
  std::vector<Slice> slices;
  ResourceGuard resources;
};

struct Certify {
  bool taper = true;  ///< margins taper with the weight (README); false: `margin` everywhere
  double margin_errors = 0.005, margin_latency = 0.01;
  double confidence = 0.95;
  std::chrono::nanoseconds max_step_duration{std::chrono::hours(1)};  ///< then Inconclusive: it holds and reports that, but does not fail
};

struct Shield {
  bool retry_stable = true;
  double budget = 0.20;  ///< of the requests in flight, plus 3
  /// hedge: p95: after this quantile of stable's latency (and 1.5 times its median) the request also goes to stable; nothing: off.
  std::optional<double> hedge = 0.95;
};

/// sticky: {header: x-user} or {cookie: session}: the same key stays on the same arm as long as the weight allows.
struct Sticky {
  std::string header, cookie;
  /// Generated at the start if the user gives none, so that no user can construct a key that goes to the canary.
  std::string salt;
  bool on() const { return !header.empty() || !cookie.empty(); }
};

/// cohort: {header: x-cohort, values: [beta]}: these requests go to the canary whenever it has a weight. They are not random: they are
/// compared with no arm and count only against the user's thresholds.
struct Cohort {
  std::string header;
  std::vector<std::string> values;
};

/// Moves that wait for an external confirmation. Not in the document: the router's configuration names the receiver.
struct Gates {
  bool rollout = false;    ///< before the first step
  bool increase = false;   ///< before each further weight
  bool promotion = false;  ///< before 100 %
};

/// Whether the weight follows the number of healthy endpoints: the canary's carry n/m of the traffic, where stable has m and the canary n.
enum class Capacity : uint8_t {
  kAuto,       ///< if the router finds the canary's endpoints in the Kubernetes API
  kEndpoints,  ///< always
  kOff
};

struct Spec {
  std::string service, stable, canary;  ///< stable empty: the current stable version
  std::string revision;  ///< with the canary's version it names what `apply` starts once (control/apply.h); such as a digest; may be empty
  /// A version that runs stable's model on replicas like the canary's; empty: compared with stable itself.
  std::string baseline;
  Sticky sticky;
  Cohort cohort;
  std::vector<std::string> dry_run;  ///< guards that only report the verdict they would have given: "output", "latency" ...
  std::vector<Step> steps;           ///< weights rise; shadow steps come before them; never empty after parse_spec
  std::chrono::nanoseconds bake{0};  ///< after 100 %: time that the old version is still used for comparison
  uint32_t bake_control_ppm = 0;     ///< share of traffic kept on the old version during the bake
  /// After the promotion: time that the old version still gets copies of requests, ready for undo.
  std::chrono::nanoseconds keep_warm{0};
  Guard guard;
  Certify certify;
  Shield shield;
  Capacity capacity = Capacity::kAuto;
  Gates gates;
};

/// Refuses unknown keys, bad values and contradictions (tests: R1, R2, R5) with line and allowed values: the first problem, and the number
/// of others.
Result<Spec> parse_spec(const config::Node& document);
/// Whether a text may be the key `revision`.
bool is_revision(std::string_view text);
/// Reports all problems; if there is any, the specification must not be used.
Spec parse_spec(const config::Node& document, config::Problems& problems);
/// The part of a document that names neither the service nor the versions: steps, guard, certify, shield, capacity, dryRun. For files that
/// contain the rules of a rollout that is made later.
Spec parse_rules(const config::Node& rules, config::Problems& problems);
/// The JSON schema of such a document, for editors and tools. It accepts everything that parse_spec() accepts of the parts it describes,
/// except unusual spellings (1e1 %). It rejects everything that parse_spec() rejects, except errors across the whole document (weights
/// rise, versions differ). tests/e2e/router/test_specification.py compares both at every key, spec_test.cc the defaults.
std::string_view spec_schema();
/// The steps of a rollout that names none: shadow 10 %, then 1, 5, 20, 50 and 100 %, each until certified.
std::vector<Step> default_steps();
/// `steps: blue-green`: shadow 10 % until certified, a manual gate, then 100 %.
std::vector<Step> blue_green_steps();
/// Defaults of a service in router.yaml: `guard:` alone.
Result<Guard> parse_guard(const config::Node& node, Guard defaults = {});
/// The specification as YAML that parse_spec reads back to the same.
std::string print_spec(const Spec& spec);
/// Whether the text is a JSON pointer (RFC 6901) to a part of a document: "/parameters/language".
bool is_json_pointer(std::string_view text);
/// "5", "0.25", "12.5%": percent with at most four decimals -> ppm; refuses negatives, NaN, over 100, five decimals.
Result<uint32_t> parse_weight(std::string_view text);

}  // namespace serin::rollout
