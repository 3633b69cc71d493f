// model_config.cc: text -> message -> settings. What a field means is Triton's; what it cannot mean here is said, not guessed.

#include "runtime/serving/settings/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>

#include "runtime/base/number.h"
#include "runtime/serving/settings/model_config_ignored.h"
#include "runtime/serving/settings/model_config_parts.h"
#include "runtime/serving/settings/model_platform.h"
#include "runtime/serving/settings/text_format.h"

namespace serin::serving {
namespace {

namespace pb = inference;

constexpr int64_t kMostInstances = 64, kMostThreads = 256;
constexpr size_t kMostTags = 32, kMostIgnored = 128;
constexpr std::string_view kIgnoredKey = "serin_ignored";  // of parameters, where clients that know the published schema find it
constexpr uint64_t kLongestUs = 86'400'000'000;            // a day
constexpr uint64_t kLongestDelayUs = 10'000'000, kMostPriorityLevels = 256;

/// What Prometheus takes as the name of a label, and no series here has.
bool is_free_label(std::string_view name) {
  constexpr std::array<std::string_view, 4> kTaken = {"model", "version", "reason", "le"};
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_inside = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && is_letter(name.front()) && !name.starts_with("__") && std::ranges::all_of(name, is_inside) &&
         std::ranges::find(kTaken, name) == kTaken.end();
}

class Applying {
 public:
  Applying(ReadModelConfig& read, const std::string& folder, ModelSettings& settings)
      : config_(read.config), ignored_(read.ignored), folder_(folder), settings_(settings) {}

  Status apply() {
    for (std::string& field : ignored_fields(config_)) ignore(std::move(field));
    SERIN_CHECK(check_platform(config_, folder_));
    SERIN_CHECK(apply_file());
    SERIN_CHECK(apply_versions());
    SERIN_CHECK(apply_batching());
    SERIN_CHECK(apply_instances());
    SERIN_CHECK(apply_tensors());
    apply_optimization();
    SERIN_CHECK(apply_parameters());
    SERIN_CHECK(apply_model_config_parts(config_, folder_, settings_));
    if (config_.model_transaction_policy().decoupled())
      return Error{Code::kUnsupported, "model_transaction_policy.decoupled: a model here gives one answer to each request"};
    return {};
  }

 private:
  void ignore(std::string what) {
    if (ignored_.size() < kMostIgnored) ignored_.push_back(std::move(what));
  }

  Status apply_file() {
    const std::string& file = config_.default_model_filename();
    if (const std::string usual = file_of_platform(config_); file.empty() && !usual.empty()) settings_.file = usual;
    if (file.empty()) return {};
    if (file.find('/') != std::string::npos || file == "." || file == ".." || file.find('\0') != std::string::npos)
      return invalid(fmt::format("default_model_filename '{}': must be the name of a file in the version's folder", file));
    settings_.file = file;
    return {};
  }

  Status apply_versions() {
    settings_.versions = {.latest = 1};  // what Triton takes where nothing is said
    const pb::ModelVersionPolicy& policy = config_.version_policy();
    if (policy.has_all()) settings_.versions.latest = 0;
    if (policy.has_latest()) settings_.versions.latest = std::max(1U, policy.latest().num_versions());
    if (!policy.has_specific()) return {};
    settings_.versions.latest = 0;
    for (const int64_t version : policy.specific().versions()) {
      if (version < 0) return invalid(fmt::format("version_policy: there is no version {}", version));
      settings_.versions.specific.push_back(static_cast<uint64_t>(version));
    }
    if (settings_.versions.specific.empty()) return invalid("version_policy: 'specific' names no version");
    return {};
  }

  Status apply_batching() {
    if (config_.max_batch_size() < 0) return invalid(fmt::format("max_batch_size is {}; it is not negative", config_.max_batch_size()));
    if (config_.max_batch_size() > kMostBatch)
      ignore(fmt::format("max_batch_size: {} is more than {}, which holds", config_.max_batch_size(), kMostBatch));
    settings_.batching = config_.max_batch_size() > 0;
    if (settings_.batching) settings_.max_batch = std::min<int64_t>(config_.max_batch_size(), kMostBatch);
    const pb::ModelDynamicBatching& dynamic = config_.dynamic_batching();
    const uint64_t delay = dynamic.max_queue_delay_microseconds();
    if (delay > kLongestDelayUs)
      ignore(fmt::format("dynamic_batching.max_queue_delay_microseconds: {} is more than {}, which holds", delay, kLongestDelayUs));
    if (config_.has_dynamic_batching()) settings_.max_queue_delay = std::chrono::microseconds(std::min(delay, kLongestDelayUs));
    return apply_queues(dynamic);
  }

  /// Without a limit where none is said, as in Triton.
  QueuePolicy queue_of(const pb::ModelQueuePolicy& policy) {
    QueuePolicy queue;
    queue.limit = policy.max_queue_size() > 0 ? policy.max_queue_size() : QueuePolicy::kNoLimit;
    queue.timeout = std::chrono::microseconds(std::min(policy.default_timeout_microseconds(), kLongestUs));
    queue.may_shorten = policy.allow_timeout_override();
    queue.delay = policy.timeout_action() == pb::ModelQueuePolicy::DELAY;
    return queue;
  }

  Status apply_queues(const pb::ModelDynamicBatching& dynamic) {
    const uint64_t levels = dynamic.priority_levels(), queues = std::clamp<uint64_t>(levels, 1, kMostPriorityLevels);
    if (levels > queues) ignore(fmt::format("dynamic_batching.priority_levels: those behind {} wait with it", queues));
    if (dynamic.default_priority_level() > levels || (levels > 0 && dynamic.default_priority_level() == 0))
      return invalid(fmt::format("dynamic_batching.default_priority_level is {}; it is 1 to {} (priority_levels)",
                                 dynamic.default_priority_level(), levels));
    const QueuePolicy common = queue_of(dynamic.default_queue_policy());
    settings_.queues = {.timeout_is_deadline = false,
                        .levels = std::vector(queues, common),
                        .standard = std::clamp<uint64_t>(dynamic.default_priority_level(), 1, queues),
                        .named = std::max<uint64_t>(levels, 1)};
    for (const auto& [level, policy] : dynamic.priority_queue_policy()) {
      if (level < 1 || level > levels)
        return invalid(fmt::format("dynamic_batching.priority_queue_policy: there is no priority {}", level));
      if (level <= queues) settings_.queues.levels[level - 1] = queue_of(policy);
    }
    return {};
  }

  Status apply_instances() {
    int64_t count = 0;
    for (const pb::ModelInstanceGroup& group : config_.instance_group()) {
      if (group.count() < 0) return invalid(fmt::format("instance_group: count is {}; it is not negative", group.count()));
      if (group.passive()) continue;
      const auto each = std::max(group.count(), 1) * std::max<int64_t>(group.gpus_size(), 1);
      if (group.kind() == pb::ModelInstanceGroup::KIND_GPU) settings_.device.kind = engine::DeviceChoice::Kind::kCuda;
      if (group.kind() == pb::ModelInstanceGroup::KIND_CPU) settings_.device = {};
      if (group.gpus_size() == 1) settings_.device.index = group.gpus(0);
      if (group.gpus_size() > 1) ignore("instance_group.gpus: more than one means all");
      if (group.count() > 0) count += each;
    }
    if (config_.instance_group_size() > 1) ignore("instance_group: of several groups the counts are added up, the last kind holds");
    if (count > kMostInstances) ignore(fmt::format("instance_group: {} instances are more than {}, which hold", count, kMostInstances));
    if (count > 0) settings_.instances = static_cast<int>(std::min(count, kMostInstances));
    return {};
  }

  Status apply_tensors() {
    if (!config_.batch_input().empty() || !config_.batch_output().empty())
      return Error{Code::kUnsupported,
                   "batch_input, batch_output: a model gets its inputs as clients send them, and nothing about the batch"};
    for (const pb::ModelInput& input : config_.input()) {
      if (input.optional() && config_.has_ensemble_scheduling())
        return Error{Code::kUnsupported, fmt::format("input '{}': optional: a request brings all inputs of an ensemble", input.name())};
      if (input.optional()) settings_.optional_inputs.insert(input.name());
      if (input.is_shape_tensor()) ignore(fmt::format("input '{}': is_shape_tensor", input.name()));
      if (input.allow_ragged_batch())
        ignore(fmt::format("input '{}': allow_ragged_batch: requests of different sizes are taken, each size in batches of its own",
                           input.name()));
    }
    for (const pb::ModelInput& input : config_.input())
      if (input.format() != pb::ModelInput::FORMAT_NONE) ignore(fmt::format("input '{}': format: the model says it", input.name()));
    for (const pb::ModelOutput& output : config_.output()) {
      if (output.label_filename().empty()) continue;
      SERIN_TRY(settings_.class_labels[output.name()], read_label_file(folder_, output.label_filename()));
    }
    return {};
  }

  /// They are the user's own, and told; but for that of Triton's backend of ONNX that there is a setting for.
  Status apply_parameters() {
    const auto threads = config_.parameters().find("intra_op_thread_count");
    if (threads == config_.parameters().end()) return {};
    const auto count = parse_number<int>(threads->second.string_value());
    if (!count || *count < 0 || *count > kMostThreads)
      return invalid(fmt::format("parameters: intra_op_thread_count is '{}'; it is 0 to {}", threads->second.string_value().substr(0, 64),
                                 kMostThreads));
    if (*count > 0) settings_.threads = *count;
    return {};
  }

  void apply_optimization() {
    const pb::ModelOptimizationPolicy& policy = config_.optimization();
    if (policy.priority() != pb::ModelOptimizationPolicy::PRIORITY_DEFAULT)
      settings_.priority = policy.priority() == pb::ModelOptimizationPolicy::PRIORITY_MAX ? 1 : -1;
    for (const auto& [name, value] : config_.metric_tags()) {
      if (is_free_label(name) && settings_.metric_tags.size() < kMostTags)
        settings_.metric_tags[name] = value;
      else
        ignore(fmt::format("metric_tags: '{}': no name of a label, one that metrics have already, or over {} of them", name.substr(0, 64),
                           kMostTags));
    }
  }

  const pb::ModelConfig& config_;
  std::vector<std::string>& ignored_;
  const std::string& folder_;
  ModelSettings& settings_;
};

}  // namespace

Result<ReadModelConfig> parse_model_config(std::string_view text) {
  ReadModelConfig read;
  SERIN_TRY(const auto unknown, parse_text_format(text, read.config));
  for (const UnknownField& field : unknown)
    read.ignored.push_back(fmt::format("{} (line {}): there is no such field{}; Triton refuses a file that has one", field.name, field.line,
                                       field.meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", field.meant)));
  return read;
}

Result<ReadModelConfig> parse_model_config_json(std::string_view json) {
  ReadModelConfig read;
  google::protobuf::util::JsonParseOptions options;
  const auto parse = [&] { return google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, &read.config, options); };
  if (const auto strict = parse(); strict.ok()) return read;
  options.ignore_unknown_fields = true;
  read.config.Clear();
  const auto lenient = parse();
  if (!lenient.ok()) return invalid(std::string(lenient.message()));
  read.ignored.emplace_back("fields that are not known here");
  return read;
}

Status apply_model_config(ReadModelConfig& read, const std::string& folder, ModelSettings& settings) {
  read.config.mutable_parameters()->erase(std::string(kIgnoredKey));  // of a configuration that a server told, and that comes back
  SERIN_CHECK(Applying(read, folder, settings).apply());
  if (!read.ignored.empty())
    (*read.config.mutable_parameters())[std::string(kIgnoredKey)].set_string_value(fmt::format("{}", fmt::join(read.ignored, "; ")));
  settings.config = std::make_shared<const pb::ModelConfig>(read.config);
  return {};
}

}  // namespace serin::serving
