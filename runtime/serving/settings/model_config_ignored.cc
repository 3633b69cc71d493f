// model_config_ignored.cc: one table of what changes nothing, and a walk over what is set. What is honoured in part, or in some models, is named by whoever applies it.

#include "runtime/serving/settings/model_config_ignored.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <string_view>

namespace serin::serving {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

struct Ignored {
  std::string_view path;
  std::string_view why = {};
};

constexpr Ignored kIgnored[] = {
    {"runtime", "the engine is part of this program"},
    {"cc_model_filenames", "one file serves all devices"},
    {"model_operations"},
    {"model_repository_agents", "files are served as they lie there"},
    {"model_metrics", "histograms have the same buckets for all models"},
    {"instance_group.rate_limiter", "instances of all models share the compute threads"},
    {"instance_group.secondary_devices"},
    {"instance_group.profile"},
    {"instance_group.host_policy"},
    {"input.is_non_linear_format_io"},
    {"output.is_non_linear_format_io"},
    {"output.is_shape_tensor"},
    {"optimization.graph.level", "a model is optimised whatever it says"},
    {"optimization.cuda.graphs", "they are recorded on a device anyway"},
    {"optimization.cuda.graph_spec", "'buckets' of serin.yaml names the sizes to be ready for"},
    {"optimization.cuda.busy_wait_events"},
    {"optimization.cuda.output_copy_stream"},
    {"optimization.execution_accelerators", "the engine has its own kernels"},
    {"optimization.gather_kernel_buffer_threshold"},
    {"optimization.eager_batching"},
    {"dynamic_batching.preferred_batch_size", "a free instance takes what waits"},
    {"dynamic_batching.preserve_ordering"},
    {"sequence_batching.iterative_sequence"},
    {"sequence_batching.direct.max_queue_delay_microseconds", "a free instance takes what waits"},
    {"sequence_batching.direct.minimum_slot_utilization", "a free instance takes what waits"},
    {"sequence_batching.oldest.preferred_batch_size", "a free instance takes what waits"},
    {"sequence_batching.oldest.max_queue_delay_microseconds", "a free instance takes what waits"},
    {"sequence_batching.oldest.preserve_ordering", "requests of one sequence are answered in order, whatever it says"},
    {"sequence_batching.state.use_same_buffer_for_input_output"},
    {"sequence_batching.state.use_growable_memory"},
    {"ensemble_scheduling.step.model_namespace"},
    {"ensemble_scheduling.max_inflight_requests"},
};

void walk(const Message& message, const std::string& prefix, std::vector<std::string>& found) {
  std::vector<const FieldDescriptor*> fields;
  const Reflection& in = *message.GetReflection();
  in.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = prefix + std::string(field->name());
    if (const auto* row = std::ranges::find(kIgnored, path, &Ignored::path); row != std::end(kIgnored)) {
      std::string line = row->why.empty() ? path : path + ": " + std::string(row->why);
      if (std::ranges::find(found, line) == found.end()) found.push_back(std::move(line));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      walk(in.GetMessage(message, field), path + ".", found);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      for (int i = 0; i < in.FieldSize(message, field); ++i) walk(in.GetRepeatedMessage(message, field, i), path + ".", found);
    }
  }
}

}  // namespace

std::vector<std::string> ignored_fields(const inference::ModelConfig& config) {
  std::vector<std::string> found;
  walk(config, "", found);
  return found;
}

}  // namespace serin::serving
