// plan_template.h: the part of `serin plan` that knows templates: which one, what it makes of the question, and what is served by it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/report.h"
#include "runtime/planner/template_plan.h"

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 has it
class App;
class Option;
}  // namespace CLI

namespace serin::cli {

struct TemplateFlags {
  std::string path;  ///< a file, or a folder of which one is chosen
  std::vector<std::string> sets;
  bool explain = false;
};
/// Returns --template.
CLI::Option* add_template_flags(CLI::App& command, TemplateFlags& flags);

struct UsedTemplate {
  planner::Template made;
  planner::FoundModel model;
  planner::TemplateReport report;      ///< without values
  std::vector<std::string> places;     ///< of the command line, else of the template
  planner::LayeredText settings_text;  ///< of the model's own serin.yaml and the template
  config::Node settings;               ///< the same, read
};
/// Errors: those of templates; kNotFound if there is no model.
Result<UsedTemplate> use_template(const TemplateFlags& flags, const std::vector<std::string>& places);

/// The value of a key of `settings` that is one word; empty: there is none.
std::string setting_of(const UsedTemplate& used, std::string_view key);

/// The reason that nothing holds: where it is the template's memory, with what would help, otherwise the advice of the offers.
std::string advice_of(const planner::OfferQuestion& wanted, const planner::Planner& planner, const std::vector<std::string>& places,
                      const planner::Question& question, const planner::Answer& answer, const planner::Offers& offers,
                      const planner::Catalogue& catalogue);

/// Comments that name each value and its place, for the lines before a manifest.
std::vector<std::string> explained_lines(const planner::TemplateReport& report);

}  // namespace serin::cli
