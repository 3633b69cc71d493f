// spec_print.cc: prints a specification as YAML that parse_spec reads back to the same one. Every default is written out, so that the
// stored text is the specification that is judged.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "router/rollout/spec.h"
#include "router/rollout/spec_parts.h"

namespace serin::rollout {
namespace {

std::string print_list(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + in_quotes(text);
  return "[" + out + "]";
}

std::string print_canary(const Spec& spec) {
  std::string text = "version: " + in_quotes(spec.canary);
  if (!spec.baseline.empty()) text += ", baseline: " + in_quotes(spec.baseline);
  if (spec.sticky.on())
    text += fmt::format(", sticky: {{{}: {}, salt: {}}}", spec.sticky.cookie.empty() ? "header" : "cookie",
                        in_quotes(spec.sticky.cookie.empty() ? spec.sticky.header : spec.sticky.cookie), in_quotes(spec.sticky.salt));
  if (!spec.cohort.header.empty())
    text += fmt::format(", cohort: {{header: {}, values: {}}}", in_quotes(spec.cohort.header), print_list(spec.cohort.values));
  return text;
}

std::string print_step(const Step& step) {
  const std::string until =
      step.until == Step::Until::kDuration ? fmt::format("{{duration: {}}}", config::print_duration(step.duration)) : "certified";
  const std::string replay = step.replay > 0 ? fmt::format("replay: {}, ", step.replay) : "";
  if (step.is_shadow()) return fmt::format("{{shadow: {{percent: {}, {}until: {}}}}}", print_weight(step.shadow_ppm), replay, until);
  if (!step.is_pause()) return fmt::format("{{setWeight: {}, until: {}}}", print_weight(step.weight_ppm), until);
  return step.until == Step::Until::kManual ? "{pause: {}}" : fmt::format("{{pause: {}}}", until);
}

std::string print_promote(const Spec& spec) {
  std::string text;
  if (spec.bake.count() > 0)
    text = fmt::format("bake: {}, control: {}", config::print_duration(spec.bake), print_weight(spec.bake_control_ppm));
  if (spec.keep_warm.count() > 0) text += fmt::format("{}keepWarm: {}", text.empty() ? "" : ", ", config::print_duration(spec.keep_warm));
  return text.empty() ? "" : fmt::format("  - {{promote: {{{}}}}}\n", text);
}

std::string print_steps(const Spec& spec) {
  std::string text = "steps:\n";
  for (const Step& step : spec.steps) text += fmt::format("  - {}\n", print_step(step));
  return text + print_promote(spec);
}

std::string print_latency(const Guard& guard) {
  std::string text;
  for (const LatencyThreshold& threshold : guard.latency_max)
    text += fmt::format("{}: {}, ", quantile_word(threshold.quantile), config::print_duration(threshold.limit));
  text += fmt::format("slack: {}, floor: {}, ", guard.latency_slack, config::print_duration(guard.latency_floor));
  if (guard.deadline) text += fmt::format("deadline: {}, ", config::print_duration(*guard.deadline));
  return text + fmt::format("baseline: {}, skip: {}", guard.latency_baseline, guard.latency_skip);
}

std::string print_output(const Guard& guard) {
  const char* compare = guard.compare == Guard::Compare::kLabel ? "label" : guard.compare == Guard::Compare::kValues ? "values" : "off";
  const std::string drift = guard.drift == 0 ? "off" : fmt::format("{}", guard.drift);
  const std::string most = guard.judge_few ? "auto" : fmt::format("{}", guard.max_disagreement);
  const std::string shadow = guard.shadow_ppm ? print_weight(*guard.shadow_ppm) : "auto";
  return fmt::format("compare: \"{}\", output: {}, maxDisagreement: {}, rtol: {}, atol: {}, shadow: {}, drift: \"{}\"", compare,
                     in_quotes(guard.output), most, guard.rtol, guard.atol, shadow, drift);
}

std::string print_prometheus(const std::vector<PrometheusGuard>& guards) {
  std::string text = guards.empty() ? "" : "  prometheus:\n";
  for (const PrometheusGuard& guard : guards)
    text +=
        fmt::format("    - {{name: {}, address: {}, query: {}, max: {}, interval: {}, breaches: {}}}\n", in_quotes(guard.name),
                    in_quotes(guard.address), in_quotes(guard.query), guard.max, config::print_duration(guard.interval), guard.breaches);
  return text;
}

std::string print_outcomes(const std::vector<OutcomeLimit>& limits) {
  std::string text = limits.empty() ? "" : "  outcomes:\n";
  for (const OutcomeLimit& limit : limits) text += fmt::format("    - {{metric: {}, margin: {}}}\n", in_quotes(limit.metric), limit.margin);
  return text;
}

std::string print_unit(Guard::Unit unit) { return unit == Guard::Unit::kBatch ? "batch" : unit == Guard::Unit::kKey ? "key" : "request"; }

std::string print_guard(const Guard& guard) {
  const std::string max = guard.errors_max ? fmt::format("max: {}, ", *guard.errors_max) : "";
  return fmt::format(
             "guard:\n"
             "  falseRollback: {}\n"
             "  errors: {{{}tolerateRatio: {}}}\n"
             "  latency: {{{}}}\n"
             "  output: {{{}}}\n"
             "  whenStableBreachesToo: {}\n"
             "  unit: {}\n",
             guard.false_rollback, max, guard.tolerate_ratio, print_latency(guard), print_output(guard),
             guard.when_stable_breaches_too == Guard::Breach::kHold ? "hold" : "rollback", print_unit(guard.unit)) +
         print_resources(guard.resources) + print_prometheus(guard.prometheus) + print_outcomes(guard.outcomes) +
         print_slices(guard.slices);
}

std::string print_shield(const Shield& shield) {
  const std::string hedge = shield.hedge ? fmt::format("p{:.0f}", 100 * *shield.hedge) : "\"off\"";
  return fmt::format("shield: {{retryStable: {}, budget: {}, hedge: {}}}\n", shield.retry_stable, shield.budget, hedge);
}

std::string print_certify(const Certify& certify) {
  const std::string margin =
      certify.taper ? "taper" : fmt::format("{{errors: {}, latency: {}}}", certify.margin_errors, certify.margin_latency);
  return fmt::format("certify: {{margin: {}, confidence: {}, maxStepDuration: {}, onTimeout: pause}}\n", margin, certify.confidence,
                     config::print_duration(certify.max_step_duration));
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string quantile_word(double quantile) {
  const auto* found = std::ranges::find(kQuantileWords, quantile, [](const auto& entry) { return entry.second; });
  return found != std::end(kQuantileWords) ? std::string(found->first) : fmt::format("p{}", quantile * 100);
}

std::string print_weight(uint32_t ppm) {
  std::string text = fmt::format("{}.{:04}", ppm / 10'000, ppm % 10'000);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string print_spec(const Spec& spec) {
  std::string text = fmt::format("kind: Rollout\nservice: {}\n", in_quotes(spec.service));
  if (!spec.stable.empty()) text += fmt::format("stable: {{version: {}}}\n", in_quotes(spec.stable));
  text += fmt::format("canary: {{{}}}\n", print_canary(spec));
  if (!spec.revision.empty()) text += fmt::format("revision: {}\n", in_quotes(spec.revision));
  text += print_steps(spec) + print_guard(spec.guard) + print_certify(spec.certify) + print_shield(spec.shield);
  constexpr std::array<std::string_view, 3> kCapacities = {"auto", "endpoints", "\"off\""};
  text += fmt::format("capacity: {}\n", kCapacities[static_cast<size_t>(spec.capacity)]);
  return spec.dry_run.empty() ? text : text + fmt::format("dryRun: {}\n", print_list(spec.dry_run));
}

}  // namespace serin::rollout
