#include "runtime/planner/template_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "runtime/base/json_quote.h"
#include "runtime/base/number.h"
#include "runtime/planner/deployment.h"
#include "runtime/planner/units.h"
#include "runtime/serving/settings/model_folder.h"

namespace serin::planner {
namespace {

namespace fs = std::filesystem;

using Flags = std::map<std::string, std::string>;

constexpr const char* kPlan = "the plan";

/// A leaf that no layer has.
void write(LayeredValue& value, const std::string& text, const std::string& where) {
  std::string quoted;
  append_json_quoted(quoted, text);
  const bool bare = parse_number<double>(text).has_value();
  if (auto node = config::Node::parse_argument(bare ? text : quoted, where); node) value.node = *std::move(node);
  value.entries.clear();
  value.where = where;
}

Error too_little(std::string message) { return {Code::kFailedPrecondition, std::move(message)}; }

class TemplateFiller {
 public:
  TemplateFiller(const Template& made, const FoundModel& model, const Offers& offers, const Flags& flags)
      : made_(made), model_(model), offers_(offers), offer_(*offers.chosen()), flags_(flags), all_(made.layers.all) {}

  Result<TemplatePlan> make() {
    name_objects();
    SERIN_CHECK(set_resources());
    SERIN_CHECK(set_replicas());
    set_words();
    all_.at("settings") = settings_of(made_, &offer_, flags_);
    manifest_.settings = block_text(all_.at("settings")).text;
    set_files();
    return TemplatePlan{std::move(manifest_), explained()};
  }

 private:
  /// What a flag says, else the template, else the plan; all of it is explained.
  std::string choose(std::string_view key, const char* flag, const std::string& given, const std::string& planned) {
    if (const auto of_flag = flags_.find(flag); of_flag != flags_.end()) {
      write(all_.at(key), of_flag->second, std::string("--") + flag);
      return of_flag->second;
    }
    if (!given.empty()) return given;
    write(all_.at(key), planned, kPlan);
    return planned;
  }

  void name_objects() {
    manifest_.name = choose("name", "", made_.name, object_name(model_.name));
    manifest_.image = choose("image", "image", made_.image, usual_image(offer_));
    manifest_.service = true;
  }

  Status set_resources() {
    manifest_.memory = choose("memory", "", made_.memory_text, fmt::format("{}Mi", limit_mebibytes(offer_, offers_.memory_threshold)));
    manifest_.cpu = choose("cpu", "", made_.cpu_text, std::to_string(offer_.cores()));
    if (made_.cpu && !offer_.on_card() && offer_.cores() > std::ceil(made_.cpu->first))
      return too_little(
          fmt::format("{} instances of {} threads compute on {} cores, and cpu ({}) has {}: reduce instances to {}, or give it {}",
                      offer_.instances, offer_.threads, offer_.cores(), made_.cpu->second, made_.cpu_text,
                      std::max(1, static_cast<int>(made_.cpu->first) / offer_.threads), offer_.cores()));
    if (!offer_.on_card()) return {};
    manifest_.accelerator = accelerator_of(offer_);
    manifest_.accelerators = made_.gpu_count.value_or(1);
    if (!made_.gpu_count) write(all_.at("gpu_count"), "1", kPlan);
    if (made_.device.empty()) write(all_.at("device"), offer_.name, kPlan);
    return {};
  }

  Status set_replicas() {
    const int needed = offer_.replicas;
    const auto short_of = [&](const char* key, const std::pair<int, std::string>& given) {
      return too_little(fmt::format("needs {} replicas for {:.6g} requests/s, and {} ({}) has {}: give it {}", needed, offers_.demand.rps,
                                    key, given.second, given.first, needed));
    };
    if (made_.replicas) {
      if (made_.replicas->first < needed) return short_of("replicas", *made_.replicas);
      manifest_.replicas = made_.replicas->first;
      return {};
    }
    if (!made_.autoscaling && offers_.demand.rps <= 0) {
      manifest_.replicas = needed;
      write(all_.at("replicas"), std::to_string(needed), kPlan);
      return {};
    }
    return set_autoscaler(made_.autoscaling.value_or(Template::Autoscaling{}), short_of);
  }

  template <class ShortOf>
  Status set_autoscaler(const Template::Autoscaling& given, const ShortOf& short_of) {
    if (given.most && given.most->first < offer_.replicas) return short_of("autoscaling.max", *given.most);
    Autoscaler scaler;
    LayeredValue& map = all_.at("autoscaling");
    if (map.where.empty()) map.where = kPlan;
    const auto number = [&](const char* key, bool is_given, int64_t planned) {
      if (!is_given) write(map.at(key), std::to_string(planned), kPlan);
    };
    scaler.least = given.least ? given.least->first : std::min(offer_.replicas, given.most ? given.most->first : offer_.replicas);
    scaler.most = given.most ? given.most->first : std::max(scaler.least, 2 * offer_.replicas);
    number("min", given.least.has_value(), scaler.least);
    number("max", given.most.has_value(), scaler.most);
    scaler.cpu_percent = given.cpu_percent.value_or(0);
    scaler.in_flight = given.in_flight.value_or(0);
    if (scaler.in_flight == 0 && scaler.cpu_percent == 0) {
      if (offer_.rate <= 0)
        return invalid(
            fmt::format("{}: autoscaling has no metric: name in_flight or cpu_percent, or let the plan know a rate by `serin plan "
                        "MODEL --calibrate`",
                        given.where));
      scaler.in_flight = static_cast<int64_t>(offer_.in_flight);
      number("in_flight", false, scaler.in_flight);
    }
    manifest_.autoscaler = scaler;
    return {};
  }

  void set_words() {
    manifest_.labels = made_.labels;
    manifest_.annotations = made_.annotations;
    manifest_.env = made_.env;
    manifest_.node_selector = made_.node_selector;
    manifest_.tolerations = made_.tolerations;
  }

  /// The version is mounted below a new folder, because a file cannot be mounted into a volume that is read-only and lacks it.
  void set_files() {
    const ModelFolder files = folder_of(model_, manifest_.settings);
    const std::string inside = "/models/" + files.name;
    const auto in_claim = [&](const std::string& name) { return fmt::format("{}{}{}", files.name, name.empty() ? "" : "/", name); };
    manifest_.mounts = {{"models", inside + "/" + files.version, in_claim(files.version_folder)}};
    for (const std::string& name : files.beside) manifest_.mounts.push_back({"models", fmt::format("{}/{}", inside, name), in_claim(name)});
    manifest_.mounts.push_back({"settings", inside + "/serin.yaml", "serin.yaml"});
    manifest_.arguments = {"serve", "--name", files.name, inside, "--address", "0.0.0.0"};
    if (offer_.on_card()) manifest_.arguments.insert(manifest_.arguments.end(), {"--device", "cuda"});
    manifest_.arguments.insert(manifest_.arguments.end(), made_.args.begin(), made_.args.end());
    manifest_.remarks = {fmt::format("{} of {} on {}; the template is {}. The claim `models` has {} at {}.", manifest_.name, model_.name,
                                     offer_.name, made_.file(), files.root, files.name)};
  }

  std::vector<ExplainedValue> explained() const {
    std::vector<ExplainedValue> values;
    explain(all_, values);
    return values;
  }

  /// Keys that are of templates, and not of what is made of them, are left out.
  static void explain(const LayeredValue& value, std::vector<ExplainedValue>& values) {
    constexpr std::string_view kOfTemplates[] = {"extends", "description", "applies_to", "command", "batch_size"};
    if (std::ranges::find(kOfTemplates, value.path) != std::end(kOfTemplates)) return;
    if (value.node) values.push_back({value.path, flow_text(*value.node), value.where});
    for (const auto& [key, inner] : value.entries) explain(inner, values);
  }

  const Template& made_;
  const FoundModel& model_;
  const Offers& offers_;
  const Offer& offer_;
  const Flags& flags_;
  LayeredValue all_;
  Manifest manifest_;
};

}  // namespace

ModelFolder folder_of(const FoundModel& model, const std::string& settings) {
  static const std::set<std::string> unnamed = {"configs", "initial_state", "warmup"};  // that are read all the same
  std::error_code unreadable;
  ModelFolder files{.name = model.name, .version = model.version, .root = model.folder, .version_folder = {}, .beside = {}};
  if (model.folder.empty()) {
    files.root = fs::absolute(model.path, unreadable).lexically_normal().parent_path().string();
    return files;
  }
  files.root = fs::absolute(model.folder, unreadable).lexically_normal().string();
  const auto inside = serving::list_folder(model.folder);
  if (!inside) return files;
  const bool all = std::ranges::find(inside->files, "config.pbtxt") != inside->files.end();
  const auto add_if_named = [&](const std::string& name) {
    const bool own = name == "serin.yaml" || name.starts_with('.') || fs::path(model.folder) / name == fs::path(model.path);
    if (!own && (all || unnamed.contains(name) || settings.find(name) != std::string::npos)) files.beside.push_back(name);
  };
  for (const std::string& name : inside->folders) {
    const auto version = serving::version_of_folder(name);
    if (version && std::to_string(*version) == model.version) files.version_folder = name;
    if (!version) add_if_named(name);
  }
  for (const std::string& name : inside->files) add_if_named(name);
  return files;
}

LayeredValue settings_of(const Template& made, const Offer* offer, const std::map<std::string, std::string>& flags) {
  LayeredValue settings;
  if (made.settings()) settings = *made.settings();
  if (settings.path.empty()) settings.path = "settings";
  if (!offer) return settings;
  const auto decide = [&](const char* key, const char* flag, const std::string& planned) {
    const bool by_flag = flags.contains(flag);
    if (by_flag || !settings.find(key)) write(settings.at(key), planned, by_flag ? std::string("--") + flag : kPlan);
  };
  decide("max_batch", "batch", std::to_string(offer->batch));
  decide("instances", "instances", std::to_string(offer->instances));
  decide("precision", "precision", offer->precision);
  if (flags.contains("threads")) decide("threads", "threads", std::to_string(offer->threads));
  return settings;
}

Result<TemplatePlan> plan_template(const Template& made, const FoundModel& model, const Offers& offers, const Flags& flags) {
  return TemplateFiller(made, model, offers, flags).make();
}

Error at_origins(Error error, const std::string& name, const LayeredText& text) {
  const std::string begin = name + ":";
  for (size_t at = 0; (at = error.message.find(begin, at)) != std::string::npos;) {
    const size_t line = at + begin.size(), colon = error.message.find(':', line), end = error.message.find(':', colon + 1);
    if (colon == std::string::npos || end == std::string::npos) break;
    const auto number = parse_number<size_t>(error.message.substr(line, colon - line));
    const bool known = number && *number >= 1 && *number <= text.origins.size();
    const std::string origin = known ? text.origins[*number - 1] : name;
    error.message.replace(at, end - at, origin);
    at += origin.size();
  }
  return error;
}

}  // namespace serin::planner
