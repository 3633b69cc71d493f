// template.cc: the keys of a template. Each layer is checked by itself, so that a wrong key is named where it stands, also if a higher layer removes it.

#include "runtime/planner/template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "runtime/base/number.h"
#include "runtime/formats/model_file.h"
#include "runtime/planner/deployment.h"
#include "runtime/planner/keys.h"
#include "runtime/planner/template_keys.h"

namespace serin::planner {
namespace {

using config::Node;
using Keys = std::vector<std::string_view>;

constexpr int kMostReplicas = 10'000;

/// As Kubernetes has cores: 4, 0.5 or 500m.
std::optional<double> parse_cores(std::string text) {
  const bool thousandths = text.ends_with('m');
  if (thousandths) text.pop_back();
  auto cores = parse_number<double>(text);
  if (cores && thousandths) cores = *cores / 1000;
  return cores && *cores >= 0.001 && *cores <= 4096 ? cores : std::nullopt;
}

class TemplateReader {
 public:
  /// `own`: the name of the model's serin.yaml, over which a template has its way.
  TemplateReader(Template& into, std::string own) : all_(into.layers.all), template_(into), own_(std::move(own)) {}

  Status read() {
    drop_own_device();
    SERIN_CHECK(read_words());
    SERIN_CHECK(read_resources());
    if (const LayeredValue* const map = all_.find("autoscaling")) SERIN_CHECK(read_autoscaling(*map));
    if (const LayeredValue* const map = all_.find("demand")) SERIN_CHECK(read_demand(*map));
    if (const LayeredValue* const map = all_.find("applies_to")) SERIN_CHECK(read_conditions(*map));
    if (const LayeredValue* const map = all_.find("smoke")) SERIN_CHECK(read_smoke(*map));
    if (const LayeredValue* const list = all_.find("tolerations")) SERIN_CHECK(read_tolerations(*list));
    if (const LayeredValue* const list = all_.find("args")) SERIN_CHECK(read_arguments(*list));
    SERIN_TRY(template_.labels, words_of("labels", true));
    SERIN_TRY(template_.node_selector, words_of("nodeSelector", true));
    SERIN_TRY(template_.annotations, words_of("annotations", false));
    SERIN_TRY(template_.env, words_of("env", false));
    return check_words();
  }

 private:
  /// A model's own file may name one; for a pod the plan does.
  void drop_own_device() {
    if (!template_.settings()) return;
    LayeredValue& settings = all_.at("settings");
    const LayeredValue* const device = settings.find("device");
    if (!device || !device->node || device->node->document() != own_) return;
    template_.notes.push_back({"device", fmt::format("of {} is ignored: the template or the plan says where it runs", device->where)});
    std::erase_if(settings.entries, [](const LayeredValue::Entry& entry) { return entry.key == "device"; });
  }

  /// Of a scalar or a list; a map is an error.
  static Result<Node> node_of(const LayeredValue& value, std::string_view kind = "one value") {
    if (!value.node) return value.error(fmt::format("must be {}, not a map", kind));
    return *value.node;
  }

  static Status map_of(const LayeredValue& value) {
    if (value.node) return value.error("must be a map");
    return {};
  }

  Result<std::string> word(std::string_view key) const {
    const LayeredValue* const value = all_.find(key);
    if (!value) return std::string();
    SERIN_TRY(const Node node, node_of(*value));
    SERIN_TRY(std::string text, node.text());
    if (text.empty()) return node.error("is empty");
    return text;
  }

  static Result<Given<int>> integer(const LayeredValue& map, std::string_view key, int64_t least, int64_t most) {
    const LayeredValue* const value = map.find(key);
    if (!value) return Given<int>();
    SERIN_TRY(const Node node, node_of(*value));
    SERIN_TRY(const int64_t number, node.integer(least, most));
    return Given<int>(std::pair(static_cast<int>(number), value->where));
  }

  static std::optional<int> only_value(const Given<int>& given) { return given ? std::optional(given->first) : std::nullopt; }

  /// A path in a template is relative to the file that has it; one of a command line, to the working folder.
  static std::string path_of(const Node& node, const std::string& text) {
    const bool of_file = node.where() != node.document();
    const std::filesystem::path folder = of_file ? std::filesystem::path(node.document()).parent_path() : std::filesystem::path();
    return (folder / text).lexically_normal().string();
  }

  Status read_words() {
    SERIN_TRY(template_.model, word("model"));
    if (!template_.model.empty()) template_.model = path_of(*all_.find("model")->node, template_.model);
    SERIN_TRY(template_.name, word("name"));
    constexpr size_t kMostOfAName = 52;
    if (!template_.name.empty() && !is_object_name(template_.name, kMostOfAName))
      return all_.find("name")->error(fmt::format("must be up to {} of a-z, 0-9 and '-', such as digits-eu", kMostOfAName));
    SERIN_TRY(template_.image, word("image"));
    if (!template_.image.empty())
      if (const Status locked = check_image(template_.image); !locked) return all_.find("image")->error(locked.error().message);
    SERIN_TRY(template_.device, word("device"));
    SERIN_CHECK(word("description"));
    if (const LayeredValue* const command = all_.find("command"))
      template_.notes.push_back(
          {"command", fmt::format("ignored: the image starts `serin serve`; more flags of it are args ({})", command->where)});
    return {};
  }

  Status read_resources() {
    if (const LayeredValue* const cpu = all_.find("cpu")) {
      SERIN_TRY(template_.cpu_text, word("cpu"));
      const auto cores = parse_cores(template_.cpu_text);
      if (!cores) return cpu->error(fmt::format("must be cores, such as 4 or 500m, not '{}'", template_.cpu_text));
      template_.cpu = std::pair(*cores, cpu->where);
    }
    if (const LayeredValue* const memory = all_.find("memory")) {
      SERIN_TRY(template_.memory_text, word("memory"));
      SERIN_TRY(const double bytes, read_bytes(*memory->node));
      template_.memory = std::pair(static_cast<size_t>(bytes), memory->where);
      if (template_.memory_text.ends_with('K')) template_.memory_text.back() = 'k';  // as Kubernetes has it
    }
    SERIN_TRY(const Given<int> cards, integer(all_, "gpu_count", 0, 64));
    template_.gpu_count = only_value(cards);
    SERIN_TRY(template_.replicas, integer(all_, "replicas", 1, kMostReplicas));
    return read_batch();
  }

  /// What an article's `batch_size` is: max_batch of serin.yaml.
  Status read_batch() {
    const LayeredValue* const batch = all_.find("batch_size");
    if (!batch) return {};
    const LayeredValue* const settings = template_.settings();
    const LayeredValue* const same = settings ? settings->find("max_batch") : nullptr;
    if (same && (!same->node || same->node->document() != own_))
      return batch->error(fmt::format("is settings.max_batch, which {} has: leave one of them out", same->where));
    SERIN_TRY(const Node node, node_of(*batch));
    SERIN_CHECK(node.integer(1, serving::kMostBatch));
    template_.notes.push_back({"batch_size", "is settings.max_batch"});
    LayeredValue& all = all_.at("settings");  // which moves `batch`
    if (all.where.empty()) all.where = node.where();
    return lay_over(all.at("max_batch"), node);
  }

  Status read_autoscaling(const LayeredValue& map) {
    SERIN_CHECK(map_of(map));
    if (template_.replicas)
      return map.error(
          fmt::format("replicas ({}) would be reset by it: remove one of them, such as `replicas: null`", template_.replicas->second));
    Template::Autoscaling scaling;
    scaling.where = map.where;
    SERIN_TRY(scaling.least, integer(map, "min", 1, kMostReplicas));
    SERIN_TRY(scaling.most, integer(map, "max", 1, kMostReplicas));
    SERIN_TRY(const Given<int> in_flight, integer(map, "in_flight", 1, 1'000'000));
    SERIN_TRY(const Given<int> percent, integer(map, "cpu_percent", 1, 100));
    scaling.in_flight = only_value(in_flight);
    scaling.cpu_percent = only_value(percent);
    if (scaling.least && scaling.most && scaling.least->first > scaling.most->first)
      return map.find("max")->error(
          fmt::format("{} is below min, which is {} ({})", scaling.most->first, scaling.least->first, scaling.least->second));
    template_.autoscaling = std::move(scaling);
    return {};
  }

  Status read_demand(const LayeredValue& map) {
    SERIN_CHECK(map_of(map));
    if (const LayeredValue* const rps = map.find("rps")) {
      SERIN_TRY(const Node node, node_of(*rps));
      SERIN_TRY(template_.demand.rps, node.number(1e-6, 1e9));
    }
    const LayeredValue* const slo = map.find("slo");
    if (!slo) return {};
    SERIN_TRY(const std::vector<std::string> texts, words_in(*slo));
    for (const std::string& text : texts) {
      auto parsed = parse_slo(text);
      if (!parsed) return slo->error(parsed.error().message);
      template_.demand.slos.push_back(*parsed);
    }
    return {};
  }

  /// A word, or a list of words.
  static Result<std::vector<std::string>> words_in(const LayeredValue& value) {
    SERIN_TRY(const Node node, node_of(value, "a word or a list"));
    std::vector<std::string> all;
    for (const Node& item : node.is_list() ? node.items() : std::vector<Node>{node}) {
      SERIN_TRY(std::string text, item.text());
      if (text.empty()) return item.error("is empty");
      all.push_back(std::move(text));
    }
    return all;
  }

  static Result<std::vector<std::string>> words_among(const LayeredValue& map, std::string_view key, const Keys& known) {
    const LayeredValue* const value = map.find(key);
    if (!value) return std::vector<std::string>();
    SERIN_TRY(std::vector<std::string> words, words_in(*value));
    for (const std::string& word : words)
      if (!known.empty() && std::ranges::find(known, std::string_view(word)) == known.end())
        return value->error(fmt::format("'{}' must be one of {}{}", word, fmt::join(known, ", "), did_you_mean(word, known)));
    return words;
  }

  static Result<std::optional<int64_t>> count(const LayeredValue& map, std::string_view key) {
    const LayeredValue* const value = map.find(key);
    if (!value) return std::optional<int64_t>();
    SERIN_TRY(const Node node, node_of(*value));
    SERIN_TRY(const std::string text, node.text());
    const auto number = parse_bytes(text);
    if (!number || text.ends_with('i'))
      return node.error(fmt::format("must be a number of parameters, such as 500K or 100M, not '{}'", text));
    return std::optional(static_cast<int64_t>(*number));
  }

  Status read_conditions(const LayeredValue& map) {
    SERIN_CHECK(map_of(map));
    Conditions conditions;
    if (const LayeredValue* const name = map.find("name")) {
      SERIN_TRY(const Node node, node_of(*name));
      SERIN_TRY(conditions.name, node.text());
    }
    SERIN_TRY(conditions.formats, words_among(map, "format", {formats::kFormatWords.begin(), formats::kFormatWords.end()}));
    SERIN_TRY(conditions.inputs, words_among(map, "input", {"image", "text", "table", "tensor"}));
    SERIN_TRY(conditions.operators, words_among(map, "operators", {}));
    if (const LayeredValue* const range = map.find("parameters")) {
      SERIN_CHECK(map_of(*range));
      SERIN_TRY(conditions.least, count(*range, "min"));
      SERIN_TRY(conditions.most, count(*range, "max"));
      if (conditions.least && conditions.most && *conditions.least > *conditions.most)
        return range->error(fmt::format("min is above max ({})", range->find("min")->where));
    }
    template_.applies_to = std::move(conditions);
    return {};
  }

  Status read_smoke(const LayeredValue& map) {
    SERIN_CHECK(map_of(map));
    Template::Smoke smoke;
    if (const LayeredValue* const data = map.find("data")) {
      SERIN_TRY(const Node node, node_of(*data));
      SERIN_TRY(const std::string text, node.text());
      if (text.empty()) return node.error("is empty");
      smoke.data = path_of(node, text);
    }
    for (const auto& [key, value] : {std::pair("rtol", &smoke.rtol), std::pair("atol", &smoke.atol)})
      if (const LayeredValue* const given = map.find(key)) {
        SERIN_TRY(const Node node, node_of(*given));
        SERIN_TRY(*value, node.number(0, 1e9));
      }
    template_.smoke = std::move(smoke);
    return {};
  }

  Status read_tolerations(const LayeredValue& list) {
    SERIN_TRY(const Node node, node_of(list, "a list, as Kubernetes has it"));
    if (!node.is_list()) return node.error("must be a list, as Kubernetes has it");
    for (const Node& item : node.items()) {
      SERIN_CHECK(only_keys(item, {"key", "operator", "value", "effect", "tolerationSeconds"}));
      Toleration each;
      SERIN_TRY(each.key, item.text("key", ""));
      SERIN_TRY(each.op, item.text("operator", ""));
      SERIN_TRY(each.value, item.text("value", ""));
      SERIN_TRY(each.effect, item.text("effect", ""));
      if (item.has("operator")) SERIN_CHECK(item.at("operator")->one_of({"Exists", "Equal"}));
      if (item.has("effect")) SERIN_CHECK(item.at("effect")->one_of({"NoSchedule", "PreferNoSchedule", "NoExecute"}));
      if (item.has("tolerationSeconds")) {
        SERIN_TRY(each.seconds, item.integer("tolerationSeconds", 0, 1'000'000'000, 0));
      }
      if (each.key.empty() && each.op != "Exists") return item.error("has no key, so its operator must be Exists");
      if (each.op == "Exists" && !each.value.empty()) return item.error("has a value, which the operator Exists does not look at");
      template_.tolerations.push_back(std::move(each));
    }
    return {};
  }

  Status read_arguments(const LayeredValue& list) {
    constexpr std::array<std::string_view, 9> kOwn = {"--name",      "--models",    "--address", "--device",   "--max-batch",
                                                      "--instances", "--precision", "--port",    "--grpc-port"};
    SERIN_TRY(template_.args, words_in(list));
    for (const std::string& word : template_.args)
      if (const std::string flag = word.substr(0, word.find('=')); std::ranges::find(kOwn, std::string_view(flag)) != kOwn.end())
        return list.error(fmt::format("{} is set by the plan: change it by settings, device or gpu_count", flag));
    return {};
  }

  /// A map from names to words, of which labels have rules.
  Result<Words> words_of(std::string_view key, bool labels) const {
    Words words;
    const LayeredValue* const map = all_.find(key);
    if (!map) return words;
    SERIN_CHECK(map_of(*map));
    for (const auto& [name, value] : map->entries) {
      SERIN_TRY(const Node node, node_of(value, "a word"));
      SERIN_TRY(std::string text, node.text());
      if (key != "env" && !is_label_name(name))
        return value.error("its name must be up to 63 letters, digits, '-', '_' and '.', after a domain and '/'");
      if (labels && !is_label(text)) return value.error("must be up to 63 letters, digits, '-', '_' and '.'");
      words.emplace_back(name, std::move(text));
    }
    return words;
  }

  Status check_words() const {
    constexpr std::array<std::string_view, 3> kSelected = {"app.kubernetes.io/name", "app.kubernetes.io/instance",
                                                           "app.kubernetes.io/component"};
    for (const auto& [name, value] : template_.labels)
      if (std::ranges::find(kSelected, std::string_view(name)) != kSelected.end())
        return all_.find("labels")->find(name)->error("is a label by which the Deployment finds its pods: `name` names it");
    for (const auto& [name, value] : template_.annotations)
      if (name.starts_with("prometheus.io/") || name == "serin.dev/settings")
        return all_.find("annotations")->find(name)->error("is written by the plan");
    for (const auto& [name, value] : template_.env) {
      const auto letter = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
      if (name.empty() || !std::ranges::all_of(name, letter) || std::isdigit(static_cast<unsigned char>(name.front())) != 0)
        return all_.find("env")->find(name)->error("must be a name of letters, digits and '_'");
    }
    const LayeredValue* const settings = template_.settings();
    if (settings) SERIN_CHECK(map_of(*settings));
    if (const LayeredValue* const device = settings ? settings->find("device") : nullptr)
      return device->error("is set by the plan: name `device` or `gpu_count` of the template");
    if (template_.gpu_count == 0 && !template_.device.empty() && template_.device != "cpu")
      return all_.find("device")->error(fmt::format("contradicts gpu_count, which is 0 ({})", all_.find("gpu_count")->where));
    if (template_.gpu_count.value_or(0) > 0 && template_.device == "cpu")
      return all_.find("device")->error(
          fmt::format("contradicts gpu_count, which is {} ({})", *template_.gpu_count, all_.find("gpu_count")->where));
    return {};
  }

  LayeredValue& all_;
  Template& template_;
  const std::string own_;
};

}  // namespace

size_t Conditions::count() const {
  return (name.empty() ? 0 : 1) + (formats.empty() ? 0 : 1) + (inputs.empty() ? 0 : 1) + (operators.empty() ? 0 : 1) +
         (least || most ? 1 : 0);
}

Result<Template> read_template(const std::string& file, const std::vector<std::string>& sets, const Node* own) {
  Template made;
  LayeredValue bottom;
  if (own && own->is_map()) SERIN_CHECK(lay_over(bottom.at("settings"), *own));
  SERIN_TRY(made.layers, read_layers(file, std::move(bottom)));
  for (const Node& layer : made.layers.nodes) SERIN_CHECK(check_template_keys(layer));
  for (const std::string& text : sets) {
    SERIN_TRY(const Layers::Setting setting, Layers::parse_setting(text));
    SERIN_CHECK(check_template_setting(setting));
    SERIN_CHECK(made.layers.set(setting));
  }
  SERIN_CHECK(TemplateReader(made, own ? own->document() : std::string()).read());
  return made;
}

}  // namespace serin::planner
