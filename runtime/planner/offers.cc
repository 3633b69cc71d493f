// offers.cc: every place is tried with every batch and precision; what holds is sorted by preference, cost and size.

#include "runtime/planner/offers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "runtime/base/number.h"
#include "runtime/planner/fit.h"
#include "runtime/planner/latency.h"
#include "runtime/planner/units.h"

namespace serin::planner {
namespace {

constexpr int kInstancesOnACard = 2;  // as the scheduler has them: one computes while rows of the other are copied
constexpr int kMostPods = 1'000'000;

/// A place as the catalogue has it.
struct Spot {
  std::optional<Device> device;
  std::string name, slice;
  double share = 1;
  const Device* card = nullptr;
};

/// "2g.20gb" has two of the card's seven parts, and its share of the bandwidth goes with its memory.
Spot slice_of(const Device& card, const Slice& slice) {
  constexpr double kParts = 7;
  Spot spot{.device = card, .name = card.name + " " + slice.name, .slice = slice.name, .share = slice.memory / card.memory, .card = &card};
  const auto parts = parse_number<double>(slice.name.substr(0, slice.name.find('g')));
  const double compute = std::min(1.0, parts.value_or(1) / kParts);
  for (auto& [precision, peak] : spot.device->peak) peak *= compute;
  spot.device->bandwidth *= spot.share;
  spot.device->memory = slice.memory;
  spot.device->usable = card.usable * spot.share;
  return spot;
}

std::vector<Spot> spots(const OfferQuestion& wanted, const Catalogue& catalogue, const Device* named) {
  std::vector<Spot> all;
  if (!named && !wanted.whole_cards) all.push_back({.device = {}, .name = "this machine's CPU"});
  if (wanted.this_machine) return all;
  for (const Device& device : catalogue.devices()) {
    const bool asked = named ? device.name == named->name : wanted.policy.rank(&device) < wanted.policy.preferred.size();
    const bool ordinary = !named && (wanted.places || device.runs) && device.kind != Device::Kind::kCpu;
    if (!asked && !ordinary) continue;
    all.push_back({.device = device, .name = device.name, .card = &device});
    if (wanted.whole_cards) continue;
    for (const Slice& slice : device.slices)
      if (slice.of_a_card > 1) all.push_back(slice_of(device, slice));
  }
  if (wanted.places)
    std::erase_if(all,
                  [&](const Spot& spot) { return spot.device && std::ranges::find(*wanted.places, spot.name) == wanted.places->end(); });
  return all;
}

/// Sizes of a batch with the same rows, of which the slowest counts.
std::map<int64_t, std::vector<const Bucket*>> by_rows(const ModelAnswer& model) {
  std::map<int64_t, std::vector<const Bucket*>> rows;
  for (const Bucket& bucket : model.buckets) rows[bucket.rows].push_back(&bucket);
  return rows;
}

class Maker {
 public:
  Maker(const Planner& planner, const std::vector<std::string>& places, const Question& question, const Answer& answer,
        const OfferQuestion& wanted)
      : planner_(planner), places_(places), question_(question), answer_(answer), model_(answer.models.front()), wanted_(wanted) {}

  /// The best of the place's precisions and batches.
  Result<Offer> offer(const Spot& spot) {
    std::optional<Offer> best;
    for (const std::string& precision : precisions(spot)) {
      for (const auto& [rows, buckets] : by_rows(model_)) {
        if (wanted_.largest_batch && rows != model_.buckets.back().rows) continue;
        SERIN_TRY(Offer each, try_batch(spot, precision, rows, buckets));
        if (!best || better(each, *best)) best = std::move(each);
      }
    }
    if (best) return *std::move(best);
    Offer none = outline(spot, "fp32");
    none.why_not = fmt::format("has no figure for {}", fmt::join(precisions_asked(spot), ", "));
    if (model_.buckets.empty()) none.why_not = "the model has no plan: " + model_.not_planned;
    return none;
  }

 private:
  static bool cpu(const Spot& spot) { return !spot.device || spot.device->kind == Device::Kind::kCpu; }

  std::vector<std::string> precisions_asked(const Spot& spot) const {
    if (cpu(spot)) return {model_.precision};
    if (!wanted_.policy.precision.empty()) return {wanted_.policy.precision};
    if (wanted_.policy.mixed_precision.value_or(false)) return {"fp32", "tf32", "fp16", "bf16"};
    return {"fp32"};
  }
  std::vector<std::string> precisions(const Spot& spot) const {
    std::vector<std::string> all = precisions_asked(spot);
    if (spot.device) std::erase_if(all, [&](const std::string& each) { return !spot.device->peak.contains(each); });
    return all;
  }

  Offer outline(const Spot& spot, const std::string& precision) const {
    Offer offer{.device = spot.device, .name = spot.name, .slice = spot.slice, .share = spot.share, .precision = precision};
    offer.threads = model_.threads;
    offer.instances = cpu(spot) ? model_.instances : question_.instances.value_or(kInstancesOnACard);
    if (!cpu(spot)) offer.threads = 1;
    offer.rank = wanted_.policy.rank(spot.card);
    offer.preferred = wanted_.policy.prefers(spot.card);
    return offer;
  }

  Result<Offer> try_batch(const Spot& spot, const std::string& precision, int64_t rows, const std::vector<const Bucket*>& buckets) {
    Offer offer = outline(spot, precision);
    offer.batch = rows;
    SERIN_TRY(const Answer* const planned, plan(rows, offer.instances));
    offer.process = cpu(spot) ? planned->total() : host_bytes(*planned);
    offer.needs = cpu(spot) ? offer.process : device_bytes(*planned, precision);
    const double room = static_cast<double>(wanted_.room.value_or(cpu(spot) ? 0 : static_cast<size_t>(spot.device->usable)));
    offer.has = static_cast<size_t>(room * wanted_.policy.memory_threshold);
    set_speed(spot, buckets, offer);
    count_requests(*planned, spot, offer);
    if (const std::string why = why_not_there(spot, precision, offer); !why.empty()) offer.why_not = why;
    set_cost(spot, offer);
    if (offer.why_not.empty()) offer.why_not = over_a_limit(offer);
    return offer;
  }

  std::string why_not_there(const Spot& spot, const std::string& precision, const Offer& offer) const {
    const std::string& only = wanted_.policy.precision;
    if (spot.device && !spot.device->runs) return "for plans only: " + spot.device->why_not;
    if (cpu(spot) && (only == "tf32" || only == "fp16")) return fmt::format("only cards compute in {}", only);
    if (cpu(spot) && !only.empty() && only != precision) return fmt::format("this CPU does not compute in {}", only);
    if (!cpu(spot) && precision == "int8") return "models are quantised for the CPU";
    if (offer.has > 0 && offer.needs > offer.has)
      return fmt::format("needs {}, and {} may be planned", short_bytes(offer.needs), short_bytes(offer.has));
    if (is_over_host_memory(offer))
      return fmt::format("needs {}, and {} has {}", short_bytes(offer.process), wanted_.host_memory->second,
                         short_bytes(static_cast<size_t>(host_memory())));
    return {};
  }

  bool is_over_host_memory(const Offer& offer) const { return wanted_.host_memory && static_cast<double>(offer.process) > host_memory(); }
  double host_memory() const { return static_cast<double>(wanted_.host_memory->first) * wanted_.policy.memory_threshold; }

  /// How much of the demand a replica carries, by both ends of the range.
  void set_speed(const Spot& spot, const std::vector<const Bucket*>& buckets, Offer& offer) const {
    double least = 0, most = 0;
    for (const Bucket* const bucket : buckets) {
      if (!spot.device) {
        if (!bucket->seconds) {
          if (offer.why_not.empty() && timed()) offer.why_not = "not measured: run `serin plan MODEL --calibrate` there first";
          return;
        }
        least = most = std::max(most, *bucket->seconds);
        offer.calibrated = true;
        continue;
      }
      const Latency latency = predict(*bucket, *spot.device, offer.precision, offer.threads);
      least = std::max(least, latency.least);
      most = std::max(most, latency.most);
    }
    const double servers = cpu(spot) ? offer.instances : 1;  // instances on a card share its cores
    const BatchServer slow{static_cast<double>(offer.batch), most}, fast{static_cast<double>(offer.batch), least};
    offer.seconds = most;
    offer.rate = servers * carried(slow);
    offer.best_rate = servers * carried(fast);
    if (offer.rate <= 0) {
      if (offer.why_not.empty()) offer.why_not = too_slow(offer, least, most);
      return;
    }
    const auto replicas = [&](double rate) {
      return static_cast<int>(std::clamp(std::ceil(wanted_.demand.rps / rate), 1.0, 1.0 * kMostPods));
    };
    offer.replicas = replicas(offer.rate);
    offer.fewest_replicas = replicas(offer.best_rate);
    const double of_one = (wanted_.demand.rps > 0 ? wanted_.demand.rps / offer.replicas : offer.rate) / servers;
    offer.late_at = latency(slow, of_one, wanted_.demand.strictest_share());
    offer.in_flight = std::max(1.0, offer.rate * latency(slow, offer.rate / servers, 0.5));
  }

  /// Requests of one row wait and run at the same time, more than the two for each instance that a plan assumes without a load.
  static void count_requests(Answer planned, const Spot& spot, Offer& offer) {
    ModelAnswer& model = planned.models.front();
    model.clients = std::max(model.clients, static_cast<int>(std::ceil(2 * offer.in_flight / static_cast<double>(offer.batch))));
    offer.process = cpu(spot) ? planned.total() : host_bytes(planned);
    if (cpu(spot)) offer.needs = offer.process;
  }

  bool timed() const { return wanted_.demand.rps > 0 || !wanted_.demand.slos.empty(); }

  double carried(const BatchServer& server) const {
    double rate = kMostBusy * server.rows / server.seconds;
    for (const Slo& slo : wanted_.demand.slos) rate = std::min(rate, most_requests(server, slo));
    return rate;
  }

  std::string too_slow(const Offer& offer, double least, double most) const {
    const auto strictest = std::ranges::min(wanted_.demand.slos, {}, &Slo::seconds);
    const std::string took =
        least < most ? fmt::format("{:.3g} to {:.3g} ms", least * 1e3, most * 1e3) : fmt::format("{:.3g} ms", most * 1e3);
    return fmt::format("a batch of {} runs for {}, which {} does not permit", offer.batch, took, strictest.print());
  }

  void set_cost(const Spot& spot, Offer& offer) const {
    if (!wanted_.prices || !wanted_.prices->knows(spot.card)) return;
    const double memory = static_cast<double>(offer.process) / wanted_.policy.memory_threshold;
    offer.hourly = offer.replicas * wanted_.prices->hour(spot.card, offer.share, offer.cores(), memory);
    const double rps = wanted_.demand.rps > 0 ? wanted_.demand.rps : offer.rate;
    if (rps > 0) offer.per_million = *offer.hourly / 3600 / rps * 1e6;
  }

  std::string over_a_limit(const Offer& offer) const {
    const Policy& policy = wanted_.policy;
    if (policy.most_replicas && offer.replicas > *policy.most_replicas)
      return fmt::format("needs {} replicas, and num_gpus_estimate is {}", offer.replicas, *policy.most_replicas);
    if (!policy.quota) return {};
    const auto over = [&](const char* what, double needs, double most, bool bytes) {
      const auto print = [&](double value) { return bytes ? short_bytes(static_cast<size_t>(value)) : fmt::format("{:.4g}", value); };
      return fmt::format("needs {} {}, and tenant '{}' may take {}", print(needs), what, policy.tenant, print(most));
    };
    const Quota& quota = *policy.quota;
    const double memory = offer.replicas * static_cast<double>(offer.process) / policy.memory_threshold;
    if (quota.devices && offer.on_card() && offer.replicas > *quota.devices) return over("devices", offer.replicas, *quota.devices, false);
    if (quota.cores && offer.replicas * offer.cores() > *quota.cores)
      return over("cores", offer.replicas * offer.cores(), *quota.cores, false);
    if (quota.memory && memory > *quota.memory) return over("of host memory", memory, *quota.memory, true);
    if (quota.hourly_cost && offer.hourly && *offer.hourly > *quota.hourly_cost)
      return over("an hour", *offer.hourly, *quota.hourly_cost, false);
    return {};
  }

  /// Of one place: fewer replicas, then the larger part of a limit, then the exact precision and the smaller batch, which came first.
  bool better(const Offer& a, const Offer& b) const {
    if (a.why_not.empty() != b.why_not.empty()) return a.why_not.empty();
    const auto failure = [this](const Offer& offer) {
      return std::tuple((offer.has > 0 && offer.needs > offer.has) || is_over_host_memory(offer), offer.rate <= 0, offer.replicas);
    };
    if (!a.why_not.empty()) return failure(a) < failure(b);
    if (a.replicas != b.replicas) return a.replicas < b.replicas;
    return !timed() && a.precision == b.precision && a.batch > b.batch;
  }

  /// With batches up to that.
  Result<const Answer*> plan(int64_t rows, int instances) {
    const auto key = std::pair(rows, instances);
    if (const auto found = plans_.find(key); found != plans_.end()) return &found->second;
    Question own = question_;
    own.instances = instances;
    own.batches.clear();
    for (const auto& [each, buckets] : by_rows(model_))
      if (each <= rows) own.batches.push_back(each);
    SERIN_TRY(Answer answer, planner_.plan(places_, own));
    return &plans_.emplace(key, std::move(answer)).first->second;
  }

  const Planner& planner_;
  const std::vector<std::string>& places_;
  const Question& question_;
  const Answer& answer_;
  const ModelAnswer& model_;
  const OfferQuestion& wanted_;
  std::map<std::pair<int64_t, int>, Answer> plans_;
};

}  // namespace

Result<Offers> make_offers(const Planner& planner, const std::vector<std::string>& places, const Question& question, const Answer& answer,
                           const OfferQuestion& wanted, const Catalogue& catalogue) {
  if (answer.models.size() != 1) {
    std::vector<std::string> names;
    names.reserve(answer.models.size());
    for (const ModelAnswer& model : answer.models) names.push_back(fmt::format("'{}' version {}", model.name, model.version));
    return invalid(
        fmt::format("a load is that of one model, and these are {}: {}; --fleet places several", names.size(), fmt::join(names, ", ")));
  }
  const Device* named = nullptr;
  if (!wanted.device.empty()) {
    SERIN_TRY(named, catalogue.find(wanted.device));
  }
  Offers offers{.demand = wanted.demand, .memory_threshold = wanted.policy.memory_threshold};
  if (wanted.prices) offers.currency = wanted.prices->currency;
  Maker maker(planner, places, question, answer, wanted);
  for (const Spot& spot : spots(wanted, catalogue, named)) {
    SERIN_TRY(Offer offer, maker.offer(spot));
    offers.all.push_back(std::move(offer));
  }
  const auto order = [](const Offer& offer) {
    constexpr double kUnpriced = 1e300;
    return std::tuple(!offer.why_not.empty(), offer.rank, !offer.preferred, offer.per_million.value_or(offer.hourly.value_or(kUnpriced)),
                      offer.on_card() ? offer.replicas * offer.device->memory : 0.0);
  };
  std::ranges::stable_sort(offers.all, [&](const Offer& a, const Offer& b) { return order(a) < order(b); });
  return offers;
}

std::string Offers::advice() const {
  if (chosen() || all.empty()) return {};
  std::vector<std::string> reasons;
  for (const Offer& offer : all)
    if (reasons.size() < 3) reasons.push_back(fmt::format("{} {}", offer.name, offer.why_not));
  std::string text = fmt::format("no place holds it: {}", fmt::join(reasons, "; "));
  const bool slow = std::ranges::any_of(all, [](const Offer& offer) { return offer.why_not.starts_with("a batch of"); });
  const bool large = std::ranges::any_of(all, [](const Offer& offer) { return offer.why_not.ends_with("may be planned"); });
  if (slow) text += "; a longer SLO, a faster precision (allow_mixed_precision) or a calibration instead of a range would help";
  if (large) text += "; smaller batches or more memory would help";
  return text;
}

}  // namespace serin::planner
