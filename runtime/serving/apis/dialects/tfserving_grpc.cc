// tfserving_grpc.cc: TensorFlow Serving's PredictionService and ModelService.

#include "runtime/serving/apis/dialects/tfserving_grpc.h"

#include "runtime/protocol/tensorflow/tfserving_grpc.h"
#include "runtime/serving/apis/dialects/tfserving_models.h"
#include "runtime/serving/apis/dialects/tfserving_multi_inference.h"
#include "runtime/serving/apis/dialects/tfserving_scores.h"
#include "runtime/serving/apis/grpc/grpc_inference.h"
#include "runtime/serving/apis/grpc/unary_method.h"
#include "runtime/serving/apis/model_control.h"
#include "runtime/serving/settings/tfserving_config.h"

namespace serin::serving {
namespace {

namespace pb = tensorflow::serving;
using protocol::TfMethod;
using CallPtr = std::shared_ptr<net::GrpcCall>;

class PredictMethod final : public net::GrpcMethod {
 public:
  explicit PredictMethod(Frontend& frontend) : frontend_(frontend) {}

  void on_message(const CallPtr& call, std::string_view message) override {
    index_grpc(call, message, protocol::TfPredictCall::read, [this, call, bytes = message.size()](Result<protocol::TfPredictCall> request) {
      if (!request) return start(call, request.error());
      auto version = find_signature_of(frontend_, request->spec, TfMethod::kPredict);
      read_grpc_inference(frontend_, call, std::move(*request), bytes / kFasterThanJson, std::move(version), TfApi::kPredict,
                          [this, call](Result<Inference::Call> asked) { start(call, std::move(asked)); });
    });
  }

 private:
  static constexpr size_t kFasterThanJson = 4;  // or more: a tensor lies there as it is, or as numbers one by one

  void start(const CallPtr& call, Result<Inference::Call> asked) {
    start_grpc_inference(frontend_, call, std::move(asked), [](std::string& out, const Finished& finished) -> Status {
      const OutputViews outputs(finished);
      protocol::append_tf_response(out, finished.version.model(), number_of(finished.version), finished.version.signature().name,
                                   named_outputs(finished, outputs));
      return {};
    });
  }

  Frontend& frontend_;
};

/// Classify and Regress: one inference about the examples.
class ExamplesMethod final : public net::GrpcMethod {
 public:
  ExamplesMethod(Frontend& frontend, TfMethod method) : frontend_(frontend), method_(method) {}

  void on_message(const CallPtr& call, std::string_view message) override {
    const auto read = [method = method_](std::string_view bytes) { return protocol::TfExamplesCall::read(bytes, method); };
    index_grpc(call, message, read, [this, call, bytes = message.size()](Result<protocol::TfExamplesCall> request) {
      if (!request) return start(call, request.error());
      auto version = find_signature_of(frontend_, request->tasks.front().spec, method_);
      const TfApi api = method_ == TfMethod::kClassify ? TfApi::kClassify : TfApi::kRegress;
      read_grpc_inference(frontend_, call, std::move(*request), bytes, std::move(version), api,
                          [this, call](Result<Inference::Call> asked) { start(call, std::move(asked)); });
    });
  }

 private:
  void start(const CallPtr& call, Result<Inference::Call> asked) {
    start_grpc_inference(frontend_, call, std::move(asked),
                         [method = method_](std::string& out, const Finished& finished) { return append(out, finished, method); });
  }

  static Status append(std::string& out, const Finished& finished, TfMethod method) {
    pb::MultiInferenceResponse answer;
    SERIN_CHECK(append_result(finished, method, answer));
    pb::InferenceResult& only = *answer.mutable_results(0);
    if (method == TfMethod::kClassify) {
      pb::ClassificationResponse response;
      response.mutable_model_spec()->Swap(only.mutable_model_spec());
      response.mutable_result()->Swap(only.mutable_classification_result());
      response.AppendToString(&out);
    } else {
      pb::RegressionResponse response;
      response.mutable_model_spec()->Swap(only.mutable_model_spec());
      response.mutable_result()->Swap(only.mutable_regression_result());
      response.AppendToString(&out);
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
  methods.emplace(predictions + "MultiInference", make_multi_inference(frontend));
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
