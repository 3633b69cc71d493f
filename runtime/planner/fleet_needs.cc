#include "runtime/planner/fleet_needs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "runtime/planner/offers.h"

namespace serin::planner {
namespace {

constexpr double kOfARank =
    1;  // most expensive accelerators that a replica may cost more to run on a device that is named one place before
constexpr double kOfPreferring = 0.1;  // and to run on one that is preferred softly

double dislike_of(const Policy& policy, size_t rank, bool preferred) {
  return kOfARank * static_cast<double>(rank) + (policy.prefer.empty() || preferred ? 0 : kOfPreferring);
}

/// A model without a file, on every kind of accelerator of the fleet, or on CPUs.
WantedModel of_numbers(const FleetModel& model, const Fleet& fleet, const Catalogue& catalogue) {
  const PlainNeeds& needs = *model.needs;
  WantedModel wanted{.name = model.task.model_name, .tenant = model.task.policy.tenant, .on = model.on, .options = {}, .no_option = {}};
  const double part = model.task.policy.memory_threshold;
  Option option{.replicas = model.replicas.value_or(1),
                .device_memory = needs.device_memory / part,
                .busy = needs.busy,
                .cores = needs.cores,
                .memory = needs.memory / part,
                .how = "as the file says"};
  if (needs.device_memory <= 0 && needs.busy <= 0) {
    wanted.options.push_back(option);
    return wanted;
  }
  for (const auto& [kind, card] : fleet.kinds()) {
    const auto device = catalogue.find(card);
    if (!device) continue;
    option.kind = kind;
    option.dislike = dislike_of(model.task.policy, model.task.policy.rank(*device), model.task.policy.prefers(*device));
    if ((*device)->runs)
      wanted.options.push_back(option);
    else
      wanted.no_option = fmt::format("{} is for plans only: {}", kind, (*device)->why_not);
  }
  if (wanted.options.empty() && wanted.no_option.empty()) wanted.no_option = "the fleet has no accelerators";
  return wanted;
}

Option of_offer(const Offer& offer, const FleetModel& model) {
  const Policy& policy = model.task.policy;
  Option option{.kind = offer.on_card() ? offer.name : std::string(),
                .replicas = std::max(offer.replicas, model.replicas.value_or(1)),
                .cores = static_cast<double>(offer.cores()),
                .memory = static_cast<double>(offer.process) / policy.memory_threshold,
                .dislike = dislike_of(policy, offer.rank, offer.preferred),
                .how = fmt::format("{}, batches up to {}", offer.precision, offer.batch)};
  if (!offer.on_card()) return option;
  option.device_memory = static_cast<double>(offer.needs) / policy.memory_threshold;
  option.busy = model.task.demand.rps / option.replicas * offer.seconds / static_cast<double>(offer.batch);
  return option;
}

Result<WantedModel> of_model(const Planner& planner, const FleetModel& model, const Fleet& fleet, const Calibration* calibration,
                             const Catalogue& catalogue) {
  const Task& task = model.task;
  Question question;
  if (task.batch) question.batches = {*task.batch};
  question.length = task.length;
  SERIN_TRY(Answer answer, planner.plan(task.models, question));
  if (calibration)
    for (ModelAnswer& each : answer.models) calibration->fill(each);
  OfferQuestion wanted{.policy = task.policy, .demand = task.demand, .prices = {}, .device = {}, .room = {}};
  wanted.places.emplace();
  for (const auto& [kind, card] : fleet.kinds()) wanted.places->push_back(kind);
  wanted.largest_batch = task.batch.has_value();
  SERIN_TRY(const Offers offers, make_offers(planner, task.models, question, answer, wanted, catalogue));
  WantedModel made{.name = task.model_name.empty() ? answer.models.front().name : task.model_name,
                   .tenant = task.policy.tenant,
                   .on = model.on,
                   .options = {},
                   .no_option = offers.advice()};
  for (const Offer& offer : offers.all)
    if (offer.why_not.empty()) made.options.push_back(of_offer(offer, model));
  return made;
}

}  // namespace

Result<std::vector<WantedModel>> fleet_needs(const Planner& planner, const Fleet& fleet, const Calibration* calibration,
                                             const Catalogue& catalogue) {
  std::vector<WantedModel> all;
  for (const FleetModel& model : fleet.models) {
    if (model.needs) {
      all.push_back(of_numbers(model, fleet, catalogue));
      continue;
    }
    auto made = of_model(planner, model, fleet, calibration, catalogue);
    if (!made)
      return made.error().in(fmt::format("model {}", model.task.model_name.empty() ? model.task.models.front() : model.task.model_name));
    all.push_back(*std::move(made));
  }
  return all;
}

}  // namespace serin::planner
