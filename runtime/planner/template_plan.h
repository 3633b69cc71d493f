// template_plan.h: a template and the plan of a model as the objects that serve it: what the template leaves open, the plan fills in.
//
//   SERIN_TRY(const TemplatePlan planned, plan_template(made, model, offers, given));
//   std::cout << manifest_text(planned.manifest);
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/planner/manifest.h"
#include "runtime/planner/offers.h"
#include "runtime/planner/places.h"
#include "runtime/planner/template.h"

namespace serin::planner {

/// A value of the template with its place: "base.yaml:4:6", "--set cpu", "the plan".
struct ExplainedValue {
  std::string key, value, where;
};

struct TemplatePlan {
  Manifest manifest;
  std::vector<ExplainedValue> values;
};

/// The files of a model, from which its folder is made again elsewhere: <name>/<version>, and the files next to it.
struct ModelFolder {
  std::string name, version;
  std::string root;                 ///< on this machine: the folder of the model, or of its only file
  std::string version_folder;       ///< in `root`; empty: `root` itself
  std::vector<std::string> beside;  ///< names in `root` of files and folders that the settings name
};
/// `settings`: the text of serin.yaml. With a config.pbtxt, which names files, too, everything in the folder counts as named.
ModelFolder folder_of(const FoundModel& model, const std::string& settings);

/// The settings of serin.yaml with the numbers of an offer, where a flag (key of `flags`, without its dashes) or no layer named them. `offer`:
/// null for the settings alone.
LayeredValue settings_of(const Template& made, const Offer* offer, const std::map<std::string, std::string>& flags);

/// `offers` has one that holds. `flags`: of the command line, by name: "image", "batch". kFailedPrecondition: the template gives less than the
/// model needs; the message names the value and its place.
Result<TemplatePlan> plan_template(const Template& made, const FoundModel& model, const Offers& offers,
                                   const std::map<std::string, std::string>& flags);

/// Replaces places in a text that was made of layers, "NAME:3:4", by those that its lines come from.
Error at_origins(Error error, const std::string& name, const LayeredText& text);

}  // namespace serin::planner
