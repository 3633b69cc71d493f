// spec.h: what the release engineer asks for. Read from YAML or JSON (a document of kind Rollout) by parse_spec().
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

struct Step {
  uint32_t weight_ppm = 0;  ///< {setWeight: 5}; 0 with shadow_ppm: a shadow step
  uint32_t shadow_ppm = 0;  ///< {shadow: {percent: 10}}: share of stable's requests mirrored
  enum class Until : uint8_t { kCertified, kDuration, kManual } until = Until::kCertified;
  std::chrono::nanoseconds duration{0};  ///< where until is kDuration

  bool is_shadow() const { return shadow_ppm > 0; }
  bool is_pause() const { return shadow_ppm == 0 && weight_ppm == 0; }  ///< {pause: {}}: the weight stays as it is
};

struct LatencyThreshold {
  double quantile = 0.99;
  std::chrono::nanoseconds limit{0};
};

/// A question of the user's own, asked of a Prometheus server. Outside of falseRollback: what it answers is taken at its word.
struct PrometheusGuard {
  std::string name;
  std::string address;  ///< http://host:9090
  std::string query;    ///< PromQL whose answer is one number
  double max = 0;       ///< above it, `breaches` times in a row: rolled back
  std::chrono::nanoseconds interval{std::chrono::seconds(15)};
  int breaches = 3;
};

struct Guard {
  double false_rollback = 0.001;              ///< alpha: the chance of ever rolling back a healthy canary
  std::optional<double> errors_max;           ///< errors: {max: 1%}: a threshold of the user's
  double tolerate_ratio = 1.0;                ///< rho0
  std::vector<LatencyThreshold> latency_max;  ///< latency: {p50|p90|p95|p99|p99.9: 50ms}
  double latency_slack = 0.10;
  std::chrono::nanoseconds latency_floor{5'000'000};
  std::optional<std::chrono::nanoseconds> deadline;  ///< D: a request still in flight then is a bad event
  uint64_t latency_baseline = 10'000;                ///< stable's answers needed before latency is judged
  uint64_t latency_skip = 50;                        ///< first canary answers not judged on latency (a cold replica)
  enum class Compare : uint8_t { kLabel, kValues, kOff } compare = Compare::kLabel;
  std::string output;  ///< name of the output compared; empty: the first
  double max_disagreement = 0.10;
  double rtol = 1e-3, atol = 1e-5;  ///< where compare is kValues
  uint32_t shadow_ppm = 0;          ///< output: {shadow: 10%}: also mirrored during weight steps
  double drift = 4;  ///< how many times as often, or as rarely, as stable's a label or an extreme score may come; 0: not judged
  enum class Breach : uint8_t { kHold, kRollback } when_stable_breaches_too = Breach::kHold;
  enum class Unit : uint8_t { kBatch, kRequest, kKey } unit = Unit::kBatch;  ///< always the key where the rollout is sticky
  std::vector<PrometheusGuard> prometheus;
};

struct Certify {
  bool taper = true;  ///< margins taper with the weight (README); false: `margin` everywhere
  double margin_errors = 0.005, margin_latency = 0.01;
  double confidence = 0.95;
  std::chrono::nanoseconds max_step_duration{std::chrono::hours(1)};  ///< then Inconclusive: held, said, not failed
};

struct Shield {
  bool retry_stable = true;
  double budget = 0.20;  ///< of the requests in flight, plus 3
  /// hedge: p95: stable is asked as well once the canary took longer than this quantile of stable's (and 1.5 times its median); nothing: off.
  std::optional<double> hedge = 0.95;
};

/// sticky: {header: x-user} or {cookie: session}: the same key stays on the same arm for as long as the weight allows.
struct Sticky {
  std::string header, cookie;
  std::string salt;  ///< drawn at the start where the user gives none: nobody can make up a key that lands on the canary
  bool on() const { return !header.empty() || !cookie.empty(); }
};

/// cohort: {header: x-cohort, values: [beta]}: these requests go to the canary whenever it has a weight. Not random: compared with nobody,
/// counted against the user's thresholds alone.
struct Cohort {
  std::string header;
  std::vector<std::string> values;
};

/// Moves that wait for a yes from outside. Not of the document: the router knows whom to ask.
struct Gates {
  bool rollout = false;    ///< before the first step
  bool increase = false;   ///< before each further weight
  bool promotion = false;  ///< before 100 %
};

struct Spec {
  std::string service, stable, canary;  ///< stable empty: whatever is stable now
  std::string baseline;  ///< a version that runs stable's model on replicas like the canary's; empty: compared with stable itself
  Sticky sticky;
  Cohort cohort;
  std::vector<std::string> dry_run;       ///< guards that only say what they would have done: "output", "latency" ...
  std::vector<Step> steps;                ///< weights rise; shadow steps come before them; never empty after parse_spec
  std::chrono::nanoseconds bake{0};       ///< after 100 %: how long the old version stays judged against
  uint32_t bake_control_ppm = 0;          ///< of traffic kept on the old version while baking
  std::chrono::nanoseconds keep_warm{0};  ///< after the promotion: how long the old version still gets copies of requests, ready for undo
  Guard guard;
  Certify certify;
  Shield shield;
  Gates gates;
};

/// Unknown keys, bad values and nonsense (tests: R1, R2, R5) are refused with line and allowed values: the first of them, and how many more.
Result<Spec> parse_spec(const config::Node& document);
/// Every one of them; the specification is good for nothing where there is any.
Spec parse_spec(const config::Node& document, config::Problems& problems);
/// The JSON schema of such a document, for editors and tools: refuses nothing that parse_spec() takes of what it describes, but spellings nobody
/// uses (1e1 %), and takes nothing that parse_spec() refuses but what only a whole document shows (weights rise, versions differ).
std::string_view spec_schema();
/// What is asked of a rollout that names no steps: shadow 10 %, then 1, 5, 20, 50 and 100 %, each until certified.
std::vector<Step> default_steps();
/// `steps: blue-green`: shadow 10 % until certified, a manual gate, then 100 %.
std::vector<Step> blue_green_steps();
/// Defaults of a service in router.yaml: `guard:` alone.
Result<Guard> parse_guard(const config::Node& node, Guard defaults = {});
/// The specification as YAML that parse_spec reads back to the same.
std::string print_spec(const Spec& spec);
/// "5", "0.25", "12.5%": percent with at most four decimals -> ppm; refuses negatives, NaN, over 100, five decimals.
Result<uint32_t> parse_weight(std::string_view text);

}  // namespace serin::rollout
