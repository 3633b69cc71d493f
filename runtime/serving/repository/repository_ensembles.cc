// repository_ensembles.cc: ensembles are made of what is loaded. One whose members come, change or go is made anew or, where one is missing, is not there, with the
// reason; requests under way keep the members they began with.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "runtime/serving/repository/repository.h"

namespace serin::serving {
namespace {

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

/// The models that an ensemble runs: as its settings have it, and as that has it which still serves.
std::set<std::string> Repository::steps_of(const std::string& name) const {
  std::set<std::string> steps;
  const auto add = [&](const EnsembleSettings& ensemble) {
    for (const EnsembleStep& step : ensemble.steps) steps.insert(step.model);
  };
  if (const auto known = known_.find(name); known != known_.end() && ensemble_of(known->second)) add(*ensemble_of(known->second));
  const auto now = catalogue_.get();
  if (const auto model = now->models.find(name); model != now->models.end())
    for (const auto& [number, version] : model->second.versions)
      if (version.settings && version.settings->ensemble) add(*version.settings->ensemble);
  return steps;
}

/// From model to model by steps, both ends included; empty where running the first does not come to running the last.
std::vector<std::string> Repository::way(const std::string& from, const std::string& to, std::set<std::string>& visited) const {
  if (from == to) return {to};
  if (!visited.insert(from).second) return {};
  for (const std::string& step : steps_of(from)) {
    std::vector<std::string> rest = way(step, to, visited);
    if (rest.empty()) continue;
    rest.insert(rest.begin(), from);
    return rest;
  }
  return {};
}

/// Whether a step is an ensemble that was not tried yet: it comes first. Those that run each other in a circle do not wait, and are told so.
bool Repository::comes_later(const std::string& name, const EnsembleSettings& ensemble) const {
  return std::ranges::any_of(ensemble.steps, [&](const EnsembleStep& step) {
    const auto member = known_.find(step.model);
    if (member == known_.end() || !ensemble_of(member->second)) return false;
    const auto untried = [](const auto& version) { return version.second.members.empty(); };
    std::set<std::string> visited;
    return std::ranges::any_of(member->second.versions, untried) && way(step.model, name, visited).empty();
  });
}

/// Again until nothing moves: an ensemble may be a step of another.
void Repository::settle_ensembles() {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& [name, known] : known_) {
      const EnsembleSettings* const ensemble = ensemble_of(known);
      if (!ensemble || comes_later(name, *ensemble)) continue;
      const auto now = catalogue_.get();
      for (auto& [number, version] : known.versions) {
        auto members = members_of(*now, *ensemble);
        // What goes on serving where these settings are wrong may be made of others.
        const auto held = entry(name, number);
        if (held && held->version && held->settings && held->settings != *known.settings && held->settings->ensemble)
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
  std::set<std::string> visited;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string step = fmt::format("step {} (model '{}')", i + 1, steps[i].model);
    if (const auto circle = way(steps[i].model, name, visited); !circle.empty())
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: {} runs this ensemble itself: {}, {}", subject, step, name, fmt::join(circle, ", "))};
    auto member = now->find(steps[i].model, steps[i].version);
    if (!member) return Error{Code::kUnavailable, fmt::format("{}: {}: {}", subject, step, member.error().message)};
    members.push_back(std::move(*member));
  }
  return Version::of_steps(name, std::to_string(number), settings, members, host_, schedulers_);
}

}  // namespace serin::serving
