// rollout_text.cc: prints the status of a rollout as text. The fields are those of router/view/status.h; a missing field is a bug
// and throws, which main() reports.

#include "runtime/cli/rollout/rollout_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <functional>
#include <string_view>

namespace serin::cli {
namespace {

namespace json = boost::json;

constexpr int kBarWidth = 20;

std::string text(const json::value& value) { return std::string(std::string_view(value.as_string())); }
double number(const json::value& value) { return value.to_number<double>(); }

/// "[#####...............]"
std::string bar(double share) {
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kBarWidth);
  return "[" + std::string(static_cast<size_t>(filled), '#') + std::string(static_cast<size_t>(kBarWidth - filled), '.') + "]";
}

double share_of_trip(const json::value& entry) {
  const double trip = number(entry.at("bits_to_trip"));
  return trip > 0 ? std::max(0.0, number(entry.at("bits"))) / trip : 0;
}

/// The strongest first: a small terminal shows no more than these.
std::string print_evidence(json::array list) {
  std::ranges::stable_sort(list, std::greater(), share_of_trip);
  std::string lines;
  for (const json::value& entry : list)
    lines += fmt::format("  {:<20} {} {:>5.1f} of {:.1f} bits   events: canary {}, stable {}\n", text(entry.at("guard")),
                         bar(share_of_trip(entry)), std::max(0.0, number(entry.at("bits"))), number(entry.at("bits_to_trip")),
                         number(entry.at("canary_events")), number(entry.at("stable_events")));
  return lines;
}

/// ", next step in about 41 s"
std::string time_left(const json::value& rollout) {
  const json::value& seconds = rollout.at("step_eta_seconds");
  if (seconds.is_null()) return "";
  const char* what = text(rollout.at("phase")) == "Baking" ? "succeeds" : "next step";
  return fmt::format(", {} in about {:.0f} s", what, number(seconds));
}

/// "err rolls it back in about 12 s, at the pace of the last 10 s"
std::string time_to_verdict(const json::value& rollout) {
  const json::value& next = rollout.at("next_verdict");
  if (next.is_null()) return "";
  const double seconds = number(next.at("seconds"));
  const std::string when = seconds < 120    ? fmt::format("{:.0f} s", seconds)
                           : seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60)
                                            : fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{} rolls it back in about {}, at the pace of the last 10 s", text(next.at("guard")), when);
}

std::string print_amount(const json::value& resource, const char* key) {
  const json::value& value = resource.at(key);
  if (value.is_null()) return "?";
  const std::string guard = text(resource.at("guard"));
  if (guard == "res_cpu") return fmt::format("{:.3g} ms", 1000 * number(value));
  return guard == "res_descriptors" ? fmt::format("{:.4g}", number(value)) : fmt::format("{:.4g} MiB", number(value) / (1 << 20));
}

/// "  res_memory           canary 512 MiB, stable 500 MiB, grows by 1.2 MiB a minute (at least 0.9 MiB)"
std::string print_resources(const json::array& list) {
  std::string lines;
  for (const json::value& entry : list) {
    const std::string guard = text(entry.at("guard"));
    if (const std::string note = text(entry.at("note")); !note.empty()) {
      lines += fmt::format("  {:<20} {}\n", guard, note);
      continue;
    }
    lines += fmt::format("  {:<20} canary {}, stable {}", guard, print_amount(entry, "canary"), print_amount(entry, "stable"));
    if (!entry.at("growth").is_null())
      lines +=
          guard == "res_cpu"
              ? fmt::format(" an answer: {:.2f} times (at least {:.2f})", number(entry.at("growth")), number(entry.at("growth_least")))
              : fmt::format(", grows by {} a minute (at least {})", print_amount(entry, "growth"), print_amount(entry, "growth_least"));
    lines += "\n";
  }
  return lines;
}

std::string print_certificates(const json::array& list) {
  std::string lines;
  for (const json::value& entry : list) {
    const double progress = number(entry.at("progress"));
    lines += fmt::format("  {:<20} {} {:>5.0f} %\n", text(entry.at("margin")), bar(progress), 100 * progress);
  }
  return lines;
}

std::string place(const json::value& rollout) {
  return fmt::format("step {} of {}", number(rollout.at("step")) + 1, number(rollout.at("steps")));
}

/// " (latency +2 %: 40 % shown)": what the step waits for most; else the judge's note; nothing where the step does not wait for evidence.
std::string still_missing(const json::value& rollout) {
  if (text(rollout.at("phase")) != "Progressing") return "";
  if (const std::string note = text(rollout.at("note")); !note.empty()) return " (" + note + ")";
  const auto& certificates = rollout.at("certificates").as_array();
  const auto progress = [](const json::value& entry) { return number(entry.at("progress")); };
  const auto least = std::ranges::min_element(certificates, {}, progress);
  if (least == certificates.end() || progress(*least) >= 1) return "";
  return fmt::format(" ({}: {:.0f} % shown)", text(least->at("margin")), 100 * std::max(0.0, progress(*least)));
}

}  // namespace

std::string print_status(const json::value& status) {
  std::string lines =
      fmt::format("{}: stable version {}, epoch {}\n", text(status.at("service")), text(status.at("stable")), number(status.at("epoch")));
  const json::value& rollout = status.at("rollout");
  if (rollout.is_null()) return lines + "  no rollout yet\n";
  const json::value& answers = rollout.at("answers");
  lines += fmt::format("  {} ({} -> {}): {}, {}\n", text(rollout.at("id")), text(rollout.at("stable")), text(rollout.at("canary")),
                       text(rollout.at("phase")), place(rollout));
  lines += fmt::format("  {}\n", text(rollout.at("reason")));
  if (const std::string note = text(rollout.at("note")); !note.empty()) lines += fmt::format("  {}\n", note);
  lines += fmt::format("weight   {} canary {:g} %, shadow {:g} %, for {:.1f} s{}\n", bar(number(rollout.at("weight")) / 100),
                       number(rollout.at("weight")), number(rollout.at("shadow_ppm")) / 10'000, number(rollout.at("seconds")),
                       time_left(rollout));
  lines += fmt::format("answers  stable {}, canary {} ({} in this step), shadow {}\n", number(answers.at("stable")),
                       number(answers.at("canary")), number(answers.at("step_canary")), number(answers.at("shadow")));
  const std::string phase = text(rollout.at("phase"));
  if (const auto& certificates = rollout.at("certificates").as_array();
      !certificates.empty() && phase != "Succeeded" && phase != "RolledBack")
    lines += "certificate for the next step\n" + print_certificates(certificates);
  lines += "evidence against the canary, in bits of what it takes to roll back\n";
  if (const std::string verdict = time_to_verdict(rollout); !verdict.empty()) lines += "  " + verdict + "\n";
  lines += print_evidence(rollout.at("evidence").as_array());
  const auto& resources = rollout.at("resources").as_array();
  return resources.empty() ? lines : lines + "resources of an endpoint\n" + print_resources(resources);
}

std::string print_status_line(const json::value& status) {
  const json::value& rollout = status.at("rollout");
  if (rollout.is_null()) return fmt::format("{}: stable {}, no rollout yet", text(status.at("service")), text(status.at("stable")));
  const json::value& answers = rollout.at("answers");
  return fmt::format("{:8.1f} s  {:<12} {:>8g} %  stable {:>8}  canary {:>6}  shadow {:>6}  {}{}", number(rollout.at("seconds")),
                     text(rollout.at("phase")), number(rollout.at("weight")), number(answers.at("stable")), number(answers.at("canary")),
                     number(answers.at("shadow")), text(rollout.at("reason")), still_missing(rollout)) +
         (rollout.at("next_verdict").is_null() ? "" : "; " + time_to_verdict(rollout));
}

std::string watch_key(const json::value& status) {
  const json::value& rollout = status.at("rollout");
  if (rollout.is_null()) return text(status.at("stable"));
  return fmt::format("{} {} {} {} {}", text(rollout.at("id")), text(rollout.at("phase")), number(rollout.at("weight_ppm")),
                     number(rollout.at("shadow_ppm")), text(rollout.at("reason")));
}

std::string print_history(const json::value& history) {
  std::string lines;
  for (const json::value& entry : history.at("history").as_array())
    lines += fmt::format("{}  {:<14} {:<12} {:>8g} %  {:<16} {}\n", text(entry.at("time")), text(entry.at("rollout")),
                         text(entry.at("event")), number(entry.at("weight")), text(entry.at("actor")), text(entry.at("detail")));
  return lines;
}

}  // namespace serin::cli
