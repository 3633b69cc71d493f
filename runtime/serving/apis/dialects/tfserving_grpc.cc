// tfserving_grpc.cc: TensorFlow Serving's PredictionService and ModelService.

#include "runtime/serving/apis/dialects/tfserving_grpc.h"

#include "runtime/base/number.h"
#include "runtime/protocol/tensorflow/tfserving_grpc.h"
#include "runtime/serving/apis/dialects/tfserving_models.h"
#include "runtime/serving/apis/grpc/grpc_inference.h"
#include "runtime/serving/apis/grpc/unary_method.h"
#include "runtime/serving/apis/model_control.h"
#include "runtime/serving/settings/tfserving_config.h"

namespace serin::serving {
namespace {

namespace pb = tensorflow::serving;
using protocol::TfMethod;
using CallPtr = std::shared_ptr<net::GrpcCall>;

Servable servable_of(const protocol::TfModelSpec& spec) {
  return {std::string(spec.model), spec.version ? std::to_string(*spec.version) : "", std::string(spec.label)};
}

int64_t number_of(const Version& version) { return parse_number<int64_t>(version.version()).value_or(0); }

class PredictMethod final : public net::GrpcMethod {
 public:
  explicit PredictMethod(Frontend& frontend) : frontend_(frontend) {}

  void on_message(const CallPtr& call, std::string_view message) override {
    index_grpc(call, message, protocol::TfPredictCall::read, [this, call, bytes = message.size()](Result<protocol::TfPredictCall> request) {
      if (!request) return start(call, request.error());
      auto version = find_servable(frontend_.catalogue(), servable_of(request->spec));
      read_grpc_inference(frontend_, call, std::move(*request), bytes / kFasterThanJson, std::move(version), TfApi::kPredict,
                          [this, call](Result<Inference::Call> asked) { start(call, std::move(asked)); });
    });
  }

 private:
  static constexpr size_t kFasterThanJson = 4;  // or more: a tensor lies there as it is, or as numbers one by one

  void start(const CallPtr& call, Result<Inference::Call> asked) {
    start_grpc_inference(frontend_, call, std::move(asked), [](std::string& out, const Finished& finished) -> Status {
      const OutputViews outputs(finished);
      protocol::append_tf_response(out, finished.version.model(), number_of(finished.version), named_outputs(finished, outputs));
      return {};
    });
  }

  Frontend& frontend_;
};

pb::ModelSpec spec_of(const Version& version) {
  pb::ModelSpec spec;
  spec.set_name(version.model());
  spec.mutable_version()->set_value(number_of(version));
  spec.set_signature_name(std::string(protocol::kTfSignature));
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

/// Classify, Regress and MultiInference: one inference about the examples, of whose outputs each task has its own.
class ExamplesMethod final : public net::GrpcMethod {
 public:
  /// `method`: kPredict means MultiInference.
  ExamplesMethod(Frontend& frontend, TfMethod method) : frontend_(frontend), method_(method) {}

  void on_message(const CallPtr& call, std::string_view message) override {
    const auto read = [method = method_](std::string_view bytes) { return protocol::TfExamplesCall::read(bytes, method); };
    index_grpc(call, message, read, [this, call, bytes = message.size()](Result<protocol::TfExamplesCall> request) {
      if (!request) return start(call, {}, request.error());
      std::vector<TfMethod> tasks;
      for (const protocol::TfTask& task : request->tasks) tasks.push_back(task.method);
      auto version = find_servable(frontend_.catalogue(), servable_of(request->tasks.front().spec));
      read_grpc_inference(frontend_, call, std::move(*request), bytes, std::move(version), api(),
                          [this, call, tasks = std::move(tasks)](Result<Inference::Call> asked) { start(call, tasks, std::move(asked)); });
    });
  }

 private:
  void start(const CallPtr& call, std::vector<TfMethod> tasks, Result<Inference::Call> asked) {
    start_grpc_inference(frontend_, call, std::move(asked),
                         [method = method_, tasks = std::move(tasks)](std::string& out, const Finished& finished) {
                           return append(out, finished, method, tasks);
                         });
  }
  TfApi api() const {
    if (method_ == TfMethod::kPredict) return TfApi::kMultiInference;
    return method_ == TfMethod::kClassify ? TfApi::kClassify : TfApi::kRegress;
  }

  /// Of all outputs those that the task asked for.
  static Result<protocol::Scores> scores_of(const Finished& finished, TfMethod task, std::span<const protocol::NamedTensor> all,
                                            std::vector<protocol::NamedTensor>& own) {
    SERIN_TRY(const std::vector<size_t> outputs, protocol::scored_outputs(task, finished.version.signature()));
    for (const size_t output : outputs)
      for (const protocol::NamedTensor& named : all)
        if (named.name == finished.version.signature().outputs[output].name) own.push_back(named);
    return protocol::read_scores(task, own);
  }

  static Status append(std::string& out, const Finished& finished, TfMethod method, const std::vector<TfMethod>& tasks) {
    const OutputViews views(finished);
    const auto outputs = named_outputs(finished, views);
    pb::MultiInferenceResponse answer;
    for (const TfMethod task : tasks) {
      std::vector<protocol::NamedTensor> own;  // the scores refer to it
      SERIN_TRY(const protocol::Scores scores, scores_of(finished, task, outputs, own));
      auto& result = *answer.add_results();
      *result.mutable_model_spec() = spec_of(finished.version);
      if (task == TfMethod::kClassify)
        *result.mutable_classification_result() = classification(scores);
      else
        *result.mutable_regression_result() = regression(scores);
    }
    return append(out, answer, method);
  }

  static Status append(std::string& out, pb::MultiInferenceResponse& answer, TfMethod method) {
    pb::InferenceResult& only = *answer.mutable_results(0);
    if (method == TfMethod::kClassify) {
      pb::ClassificationResponse response;
      response.mutable_model_spec()->Swap(only.mutable_model_spec());
      response.mutable_result()->Swap(only.mutable_classification_result());
      response.AppendToString(&out);
    } else if (method == TfMethod::kRegress) {
      pb::RegressionResponse response;
      response.mutable_model_spec()->Swap(only.mutable_model_spec());
      response.mutable_result()->Swap(only.mutable_regression_result());
      response.AppendToString(&out);
    } else {
      answer.AppendToString(&out);
    }
    return {};
  }

  Frontend& frontend_;
  const TfMethod method_;
};

/// Models in place of those that are served, with their versions and labels.
void reload(Frontend& frontend, const pb::ReloadConfigRequest& request, const Repository::Done& done) {
  auto roots = roots_of(request.config());
  if (!roots) return done(roots.error());
  serve_roots(frontend, std::move(*roots), done);
}

Error missing_spec() { return {Code::kInvalidArgument, "Missing ModelSpec"}; }

}  // namespace

void add_tfserving_methods(Frontend& frontend, GrpcMethodMap& methods) {
  const std::string predictions = "/tensorflow.serving.PredictionService/", models = "/tensorflow.serving.ModelService/";
  methods.emplace(predictions + "Predict", std::make_unique<PredictMethod>(frontend));
  methods.emplace(predictions + "Classify", std::make_unique<ExamplesMethod>(frontend, TfMethod::kClassify));
  methods.emplace(predictions + "Regress", std::make_unique<ExamplesMethod>(frontend, TfMethod::kRegress));
  methods.emplace(predictions + "MultiInference", std::make_unique<ExamplesMethod>(frontend, TfMethod::kPredict));
  using Reload = OrderMethod<pb::ReloadConfigRequest, pb::ReloadConfigResponse>;
  methods.emplace(models + "HandleReloadConfigRequest",
                  std::make_unique<Reload>([&frontend](const auto& request, const auto& done) { reload(frontend, request, done); }));
  add_unary<pb::GetModelMetadataRequest, pb::GetModelMetadataResponse>(
      methods, predictions + "GetModelMetadata",
      [&frontend](const pb::GetModelMetadataRequest& request) -> Result<pb::GetModelMetadataResponse> {
        if (!request.has_model_spec()) return missing_spec();
        for (const std::string& field : request.metadata_field())
          if (field != "signature_def")
            return Error{Code::kInvalidArgument, "Metadata field " + field.substr(0, 256) + " is not supported"};
        return servable_metadata(frontend.catalogue(), servable_of(request.model_spec()));
      });
  add_unary<pb::GetModelStatusRequest, pb::GetModelStatusResponse>(
      methods, models + "GetModelStatus", [&frontend](const pb::GetModelStatusRequest& request) -> Result<pb::GetModelStatusResponse> {
        if (!request.has_model_spec()) return missing_spec();
        return servable_status(frontend.catalogue(), servable_of(request.model_spec()));
      });
}

}  // namespace serin::serving
