#include "runtime/planner/placement.h"

#include <fmt/format.h>

#include "runtime/planner/units.h"

namespace serin::planner {
namespace {

Room room_of(const PlacementQuestion& wanted, const Device* device) {
  const bool card = device && device->kind != Device::Kind::kCpu;
  Room room;
  room.device = card ? device : nullptr;
  room.bytes = wanted.room.value_or(card ? static_cast<size_t>(device->usable) : 0);
  room.name = card ? device->name : "the limit";
  return room;
}

}  // namespace

Result<Placement> place(const Planner& planner, const std::vector<std::string>& places, const Question& question, const Answer& answer,
                        const PlacementQuestion& wanted, const Catalogue& catalogue) {
  Placement placement;
  if (!wanted.device.empty()) {
    SERIN_TRY(const Device* const device, catalogue.find(wanted.device));
    placement.device = *device;
    for (const ModelAnswer& model : answer.models) {
      placement.precision = wanted.precision.empty() ? model.precision : wanted.precision;
      placement.roofs.push_back(roof_of(*device, placement.precision, model.instances * model.threads));
      if (placement.roofs.back().flops == 0) return invalid(fmt::format("{} has no figure for {}", device->name, placement.precision));
      auto& latencies = placement.latencies.emplace_back();
      for (const Bucket& bucket : model.buckets) latencies.push_back(predict(bucket, *device, placement.precision, model.threads));
    }
  }
  const Room room = room_of(wanted, placement.device ? &*placement.device : nullptr);
  if (room.bytes > 0) {
    const auto again = [&](const Question& other) { return planner.plan(places, other); };
    SERIN_TRY(placement.fit, fit(again, question, answer, room, placement.precision, catalogue));
    placement.where = room.name;
  }
  placement.resources = kubernetes_resources(answer, placement.device ? &*placement.device : nullptr,
                                             placement.fit ? placement.fit->smallest : std::string());
  return placement;
}

}  // namespace serin::planner
