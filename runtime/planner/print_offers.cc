// print_offers.cc: offers as a table, and as data.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>

#include "runtime/planner/report.h"
#include "runtime/planner/report_parts.h"
#include "runtime/planner/table.h"
#include "runtime/planner/units.h"

namespace serin::planner {
namespace {

namespace json = boost::json;

constexpr size_t kMostHolding = 8, kMostRefused = 8;

std::string money(std::optional<double> amount) { return amount ? fmt::format("{:.3g}", *amount) : "-"; }

std::string count_of(int fewest, int count) { return fewest < count ? fmt::format("{} to {}", fewest, count) : fmt::format("{}", count); }

std::string plain_number(double value) {
  std::string text = short_number(value, "");
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string rate_of(const Offer& offer) {
  if (offer.rate <= 0) return "-";
  if (offer.best_rate <= offer.rate * 1.001) return plain_number(offer.rate);
  return plain_number(offer.rate) + " to " + plain_number(offer.best_rate);
}

std::string demand_of(const Demand& demand) {
  std::string text = demand.rps > 0 ? fmt::format("{:.6g} requests/s", demand.rps) : "one replica";
  for (const Slo& slo : demand.slos) text += ", " + slo.print();
  return text;
}

std::string choice(const Offers& offers, const Offer& best) {
  std::string text =
      fmt::format("\n{}: {} in {}, batches up to {}, {} instance{}, {} replica{}\n", demand_of(offers.demand), best.name, best.precision,
                  best.batch, best.instances, best.instances == 1 ? "" : "s", best.replicas, best.replicas == 1 ? "" : "s");
  std::vector<std::pair<std::string, std::string>> rows;
  if (best.rate > 0) {
    const std::string end = best.calibrated ? "measured on this machine" : "uncalibrated: the slow end of the range decides";
    rows.emplace_back("rate of a replica", fmt::format("{}/s in time; {}", rate_of(best), end));
    if (best.fewest_replicas < best.replicas)
      rows.emplace_back("replicas", fmt::format("{}; {} would do by the fast end: calibrate, or scale by what is measured", best.replicas,
                                                best.fewest_replicas));
    rows.emplace_back("latency", fmt::format("p{:.6g} within {:.3g} ms, an upper bound for requests at random times",
                                             100 * offers.demand.strictest_share(), best.late_at * 1e3));
  }
  rows.emplace_back("memory", best.on_card() ? fmt::format("{} of the card's {}, {} of the host", short_bytes(best.needs),
                                                           short_bytes(best.has), short_bytes(best.process))
                                             : short_bytes(best.process));
  if (offers.memory_threshold < 1)
    rows.emplace_back("threshold", fmt::format("{:.4g} % of a memory is planned, the rest is kept free", 100 * offers.memory_threshold));
  if (best.per_million)
    rows.emplace_back("cost", fmt::format("{:.3g} {} an hour, {:.3g} {} for a million answers", *best.hourly, offers.currency,
                                          *best.per_million, offers.currency));
  if (offers.demand.rps > 0)
    rows.emplace_back("autoscaling", fmt::format("from {} replicas, at {} of serin_model_in_flight_requests in each", best.replicas,
                                                 static_cast<int64_t>(best.in_flight)));
  for (const auto& [name, value] : rows) text += fmt::format("  {:<18} {}\n", name, value);
  return text;
}

json::value number_or_null(std::optional<double> value) { return value ? json::value(*value) : json::value(); }

}  // namespace

std::string notes_text(const std::vector<Note>& notes) {
  if (notes.empty()) return {};
  std::string text = "\nkeys of the file that mean something else here, or nothing\n";
  for (const Note& note : notes) text += fmt::format("  {}: {}\n", note.key, note.text);
  return text;
}

std::string offers_text(const Offers& offers) {
  std::vector<std::vector<std::string>> rows = {{"place", "precision", "remark", "batch", "replicas", "rate of one", "memory"}};
  const bool priced = !offers.currency.empty();
  if (priced) rows.front().push_back(offers.currency + "/million");
  size_t holding = 0, refused = 0, left_out = 0;
  for (const Offer& offer : offers.all) {
    const bool holds = offer.why_not.empty();
    if (holds ? ++holding > kMostHolding : ++refused > kMostRefused) {
      ++left_out;
      continue;
    }
    rows.push_back({offer.name, offer.precision,
                    holds ? (&offer == offers.chosen() ? "chosen"
                             : offer.preferred         ? "preferred"
                                                       : "")
                          : offer.why_not,
                    fmt::format("{}", offer.batch), holds ? count_of(offer.fewest_replicas, offer.replicas) : "-", rate_of(offer),
                    short_bytes(offer.needs)});
    if (priced) rows.back().push_back(money(offer.per_million));
  }
  const Offer* const best = offers.chosen();
  std::string text = best ? choice(offers, *best) : fmt::format("\n{}: {}\n", demand_of(offers.demand), offers.advice());
  text += "\n" + table(rows, "  ", 3);
  if (left_out > 0) text += fmt::format("  and {} places more, in --json\n", left_out);
  return text;
}

json::object offers_json(const Offers& offers, const std::vector<Note>& notes) {
  json::array list, slos, remarks;
  for (const Slo& slo : offers.demand.slos) slos.push_back({{"share", slo.share}, {"seconds", slo.seconds}});
  for (const Note& note : notes) remarks.push_back({{"key", note.key}, {"text", note.text}});
  for (const Offer& offer : offers.all)
    list.push_back({{"place", offer.name},
                    {"on_card", offer.on_card()},
                    {"slice", offer.slice},
                    {"precision", offer.precision},
                    {"batch", offer.batch},
                    {"instances", offer.instances},
                    {"threads", offer.threads},
                    {"needs_bytes", offer.needs},
                    {"has_bytes", offer.has},
                    {"process_bytes", offer.process},
                    {"calibrated", offer.calibrated},
                    {"batch_seconds", offer.seconds},
                    {"rate", offer.rate},
                    {"best_rate", offer.best_rate},
                    {"replicas", offer.replicas},
                    {"fewest_replicas", offer.fewest_replicas},
                    {"latency_seconds", std::isfinite(offer.late_at) ? json::value(offer.late_at) : json::value()},
                    {"in_flight", offer.in_flight},
                    {"hourly_cost", number_or_null(offer.hourly)},
                    {"cost_per_million", number_or_null(offer.per_million)},
                    {"preferred", offer.preferred},
                    {"why_not", offer.why_not}});
  return {{"rps", offers.demand.rps},
          {"slos", std::move(slos)},
          {"memory_threshold", offers.memory_threshold},
          {"currency", offers.currency},
          {"holds", offers.chosen() != nullptr},
          {"advice", offers.advice()},
          {"offers", std::move(list)},
          {"notes", std::move(remarks)}};
}

}  // namespace serin::planner
