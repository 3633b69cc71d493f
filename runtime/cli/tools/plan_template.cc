#include "runtime/cli/tools/plan_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <sstream>

#include "runtime/planner/fit.h"
#include "runtime/planner/template_choice.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;

using config::Node;
using planner::FoundModel;

constexpr const char* kSettings = "settings of the template";  // in messages, whose lines are then traced to their layers

/// serin.yaml of the model's folder. Nothing: it has none.
Result<std::optional<Node>> own_settings(const FoundModel& model) {
  if (model.folder.empty()) return std::optional<Node>();
  auto node = Node::load((fs::path(model.folder) / "serin.yaml").string());
  if (!node && node.error().code == Code::kNotFound) return std::optional<Node>();
  if (!node) return node.error();
  return std::optional(*std::move(node));
}

Result<planner::Choice> choose(const TemplateFlags& flags, const std::vector<std::string>& places) {
  std::error_code unreadable;
  if (!fs::is_directory(flags.path, unreadable)) return planner::Choice{.file = flags.path, .why = {}, .why_not = {}};
  if (places.empty()) return invalid(fmt::format("--template {}: name the model, by which one of the folder is chosen", flags.path));
  SERIN_TRY(const std::vector<FoundModel> found, planner::find_models(places));
  SERIN_TRY(const planner::Traits traits, planner::traits_of(found.back()));
  return planner::choose_template(flags.path, flags.sets, traits);
}

}  // namespace

CLI::Option* add_template_flags(CLI::App& command, TemplateFlags& flags) {
  auto* made = command.add_option(
      "--template", flags.path, "template of resources and settings (YAML), or a folder of them, of which the most specific one is chosen");
  command.add_option("--set", flags.sets, "KEY=VALUE over the template, e.g. autoscaling.max=8; can be given several times")
      ->allow_extra_args(false)
      ->needs(made);
  command.add_flag("--explain", flags.explain, "name the place of each value of the template")->needs(made);
  return made;
}

Result<UsedTemplate> use_template(const TemplateFlags& flags, const std::vector<std::string>& places) {
  SERIN_TRY(const planner::Choice choice, choose(flags, places));
  SERIN_TRY(const planner::Template alone, planner::read_template(choice.file, flags.sets));
  std::vector<std::string> named = places;
  if (named.empty() && !alone.model.empty()) named = {alone.model};
  if (named.empty())
    return invalid(fmt::format("{}: name the model's file or folder as an argument, or as model: in the template", choice.file));
  SERIN_TRY(const std::vector<FoundModel> first, planner::find_models(named));
  SERIN_TRY(const std::optional<Node> own, own_settings(first.back()));
  SERIN_TRY(planner::Template made, planner::read_template(choice.file, flags.sets, own ? &*own : nullptr));
  planner::LayeredText text = planner::block_text(planner::settings_of(made, nullptr, {}));
  SERIN_TRY(Node settings, Node::parse(text.text, kSettings));
  auto found = planner::find_models(named, &settings);
  if (!found) return planner::at_origins(found.error(), kSettings, text);
  if (!places.empty() && !made.model.empty()) made.notes.push_back({"model", "ignored: the command line names one"});
  planner::TemplateReport report{.files = made.layers.files, .why = choice.why, .why_not = choice.why_not, .values = {}};
  return UsedTemplate{std::move(made), std::move(found->back()), std::move(report), std::move(named), std::move(text), std::move(settings)};
}

std::string setting_of(const UsedTemplate& used, std::string_view key) {
  const auto text = used.settings.text(key, "");
  return text ? *text : std::string();
}

std::string advice_of(const planner::OfferQuestion& wanted, const planner::Planner& planner, const std::vector<std::string>& places,
                      const planner::Question& question, const planner::Answer& answer, const planner::Offers& offers,
                      const planner::Catalogue& catalogue) {
  const auto& memory = wanted.host_memory;
  if (!memory || offers.all.empty() || offers.all.front().why_not.find(memory->second) == std::string::npos) return offers.advice();
  const planner::Room room{.bytes = static_cast<size_t>(static_cast<double>(memory->first) * offers.memory_threshold),
                           .name = memory->second};
  const auto again = [&](const planner::Question& other) { return planner.plan(places, other); };
  const auto fit = planner::fit(again, question, answer, room, "fp32", catalogue);
  return fit && !fit->fits ? fit->advice : offers.all.front().why_not;
}

std::vector<std::string> explained_lines(const planner::TemplateReport& report) {
  std::vector<std::string> lines;
  std::istringstream text(planner::template_text(report, true));
  for (std::string line; std::getline(text, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace serin::cli
