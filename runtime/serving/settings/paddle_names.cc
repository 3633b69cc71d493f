#include "runtime/serving/settings/paddle_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "paddle_serving.pb.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/serving/settings/text_format.h"

namespace serin::serving {
namespace {

namespace paddle_pb = paddle::serving;

constexpr const char* kFile = "serving_server_conf.prototxt";
constexpr size_t kMostBytes = size_t{1} << 20;

void name_all(const google::protobuf::RepeatedPtrField<paddle_pb::Variable>& variables, const std::string& model,
              std::vector<protocol::TensorSpec>& specs) {
  for (const paddle_pb::Variable& variable : variables) {
    const auto spec = std::ranges::find(specs, variable.name(), &protocol::TensorSpec::name);
    if (spec == specs.end())
      log::warning("{}: {}: '{}' is not in the model", model, kFile, variable.name());
    else
      spec->alias = variable.alias_name();
  }
}

}  // namespace

Status read_paddle_names(const std::string& model_path, protocol::Signature& signature) {
  const auto text = read_file((std::filesystem::path(model_path).parent_path() / kFile).string(), kMostBytes);
  if (!text && text.error().code == Code::kNotFound) return {};
  if (!text) return text.error().in(kFile);
  paddle_pb::GeneralModelConfig config;
  if (const auto read = parse_text_format(*text, config); !read) return read.error().in(kFile);
  name_all(config.feed_var(), signature.model, signature.inputs);
  name_all(config.fetch_var(), signature.model, signature.outputs);
  return {};
}

}  // namespace serin::serving
