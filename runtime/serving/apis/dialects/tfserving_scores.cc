#include "runtime/serving/apis/dialects/tfserving_scores.h"

#include "runtime/base/number.h"

namespace serin::serving {
namespace {

namespace pb = tensorflow::serving;
using protocol::TfMethod;

Servable servable_of(const protocol::TfModelSpec& spec) {
  return {std::string(spec.model), spec.version ? std::to_string(*spec.version) : "", std::string(spec.label)};
}

pb::ModelSpec spec_of(const Version& version) {
  pb::ModelSpec spec;
  spec.set_name(version.model());
  spec.mutable_version()->set_value(number_of(version));
  spec.set_signature_name(version.signature().name.empty() ? std::string(protocol::kTfSignature) : version.signature().name);
  return spec;
}

pb::ClassificationResult classification(const protocol::Scores& scores) {
  pb::ClassificationResult result;
  for (int64_t row = 0; row < scores.rows; ++row) {
    auto& classes = *result.add_classifications();
    for (int64_t i = 0; i < scores.classes; ++i) {
      auto& one = *classes.add_classes();
      one.set_label(std::string(scores.label(row, i)));
      one.set_score(static_cast<float>(scores.score(row, i)));
    }
  }
  return result;
}

pb::RegressionResult regression(const protocol::Scores& scores) {
  pb::RegressionResult result;
  for (int64_t row = 0; row < scores.rows; ++row) result.add_regressions()->set_value(static_cast<float>(scores.score(row, 0)));
  return result;
}

}  // namespace

int64_t number_of(const Version& version) { return parse_number<int64_t>(version.version()).value_or(0); }

Result<std::shared_ptr<Version>> find_signature_of(Frontend& frontend, const protocol::TfModelSpec& spec, TfMethod method) {
  SERIN_TRY(const std::shared_ptr<Version> version, find_servable(frontend.catalogue(), servable_of(spec)));
  return find_signature(version, spec.signature, method);
}

Status append_result(const Finished& finished, TfMethod task, pb::MultiInferenceResponse& answer) {
  const Version& version = finished.version;
  const OutputViews views(finished);
  const auto all = named_outputs(finished, views);
  SERIN_TRY(const std::vector<size_t> outputs, protocol::scored_outputs(task, version.signature()));
  std::vector<protocol::NamedTensor> own;  // the scores refer to it
  for (const size_t output : outputs)
    for (const protocol::NamedTensor& named : all)
      if (named.name == version.signature().outputs[output].name) own.push_back(named);
  SERIN_TRY(const protocol::Scores scores, protocol::read_scores(task, own));
  auto& result = *answer.add_results();
  *result.mutable_model_spec() = spec_of(version);
  if (task == TfMethod::kClassify)
    *result.mutable_classification_result() = classification(scores);
  else
    *result.mutable_regression_result() = regression(scores);
  return {};
}

}  // namespace serin::serving
