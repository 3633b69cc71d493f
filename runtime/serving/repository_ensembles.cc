// repository_ensembles.cc: ensembles are made of what is loaded. One whose members come, change or go is made anew or, where one is missing, is not there, with the
// reason; requests under way keep the members they began with.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "runtime/serving/repository.h"

namespace serin::serving {
namespace {

/// Whether running that model comes to running `name`.
bool leads_to(const Catalogue& now, const std::string& model, const std::string& name, std::set<std::string_view>& visited) {
  if (model == name) return true;
  const auto entry = now.models.find(model);
  if (entry == now.models.end() || !visited.insert(entry->first).second) return false;
  for (const auto& [number, version] : entry->second.versions) {
    if (!version.settings || !version.settings->ensemble) continue;
    for (const EnsembleStep& step : version.settings->ensemble->steps)
      if (leads_to(now, step.model, name, visited)) return true;
  }
  return false;
}

/// Of each step; null: it is not there.
std::vector<std::shared_ptr<Version>> members_of(const Catalogue& now, const EnsembleSettings& ensemble) {
  std::vector<std::shared_ptr<Version>> members;
  for (const EnsembleStep& step : ensemble.steps) {
    const auto member = now.find(step.model, step.version);
    members.push_back(member ? *member : nullptr);
  }
  return members;
}

}  // namespace

const EnsembleSettings* Repository::ensemble_of(const Known& known) {
  return known.settings && *known.settings && (*known.settings)->ensemble ? &*(*known.settings)->ensemble : nullptr;
}

/// Whether all that an ensemble is made of is there; of another model nothing is missing.
bool Repository::has_members(const ModelSettings& settings) const {
  const auto now = catalogue_.get();
  const auto is_there = [&](const EnsembleStep& step) { return now->find(step.model, step.version).has_value(); };
  return !settings.ensemble || std::ranges::all_of(settings.ensemble->steps, is_there);
}

/// Again until nothing moves: an ensemble may be a step of another.
void Repository::settle_ensembles() {
  for (bool moved = true; moved;) {
    moved = false;
    const auto now = catalogue_.get();
    for (auto& [name, known] : known_) {
      const EnsembleSettings* const ensemble = ensemble_of(known);
      if (!ensemble) continue;
      for (auto& [number, version] : known.versions) {
        auto members = members_of(*now, *ensemble);
        // What goes on serving where these settings are wrong may be made of others.
        if (const auto held = entry(name, number); held && held->version && held->settings && held->settings->ensemble)
          std::ranges::move(members_of(*now, *held->settings->ensemble), std::back_inserter(members));
        if (version.members == members) continue;
        version.members = std::move(members);
        (void)load_version(name, number, known);  // said where it happened
        moved = true;
      }
    }
  }
}

Result<std::shared_ptr<Version>> Repository::make_ensemble(const std::string& name, uint64_t number, const ModelSettings& settings) {
  const auto now = catalogue_.get();
  const std::string subject = fmt::format("model '{}' version {}", name, number);
  std::vector<std::shared_ptr<Version>> members;
  const auto& steps = settings.ensemble->steps;
  std::set<std::string_view> visited;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string step = fmt::format("step {} (model '{}')", i + 1, steps[i].model);
    if (leads_to(*now, steps[i].model, name, visited))
      return Error{Code::kInvalidArgument, fmt::format("{}: {} runs this ensemble itself", subject, step)};
    auto member = now->find(steps[i].model, steps[i].version);
    if (!member) return Error{Code::kUnavailable, fmt::format("{}: {}: {}", subject, step, member.error().message)};
    members.push_back(std::move(*member));
  }
  return Version::of_steps(name, std::to_string(number), settings, members, host_);
}

}  // namespace serin::serving
