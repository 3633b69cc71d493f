#include "runtime/serving/apis/dialects/tfserving_multi_inference.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/serving/apis/dialects/tfserving_scores.h"
#include "runtime/serving/apis/grpc/grpc_inference.h"

namespace serin::serving {
namespace {

namespace pb = tensorflow::serving;
using protocol::TfMethod;
using CallPtr = std::shared_ptr<net::GrpcCall>;

class MultiInferenceMethod final : public net::GrpcMethod {
 public:
  explicit MultiInferenceMethod(Frontend& frontend) : frontend_(frontend) {}

  void on_message(const CallPtr& call, std::string_view message) override {
    const auto read = [](std::string_view bytes) { return protocol::TfExamplesCall::read(bytes, TfMethod::kPredict); };
    index_grpc(call, message, read, [this, call, bytes = message.size()](Result<protocol::TfExamplesCall> request) {
      const auto gathering = std::make_shared<Gathering>(frontend_, call);
      const Status planned = request ? gathering->plan(*request) : Status(request.error());
      if (!planned) return gathering->refuse(planned.error());
      gathering->read(0, bytes);
    });
  }

 private:
  struct Part {
    std::shared_ptr<Version> version;
    protocol::TfExamplesCall request;  // with its tasks only
    std::optional<KeptFinished> finished;
    std::shared_ptr<Inference> inference;
  };

  /// All parts of one call, on its io thread.
  struct Gathering : std::enable_shared_from_this<Gathering> {
    Gathering(Frontend& the_frontend, CallPtr the_call) : frontend(the_frontend), call(std::move(the_call)) {}

    Status plan(const protocol::TfExamplesCall& request) {
      for (const protocol::TfTask& task : request.tasks) {
        SERIN_TRY(const std::shared_ptr<Version> version, find_signature_of(frontend, task.spec, task.method));
        auto part = std::ranges::find(parts, version, &Part::version);
        if (part == parts.end()) {
          parts.push_back({.version = version, .request = request, .finished = {}, .inference = nullptr});
          part = parts.end() - 1;
          part->request.tasks.clear();
        }
        part->request.tasks.push_back(task);
        tasks.emplace_back(static_cast<size_t>(part - parts.begin()), task.method);
      }
      missing = parts.size();
      return {};
    }

    /// One after the other: a call has one helper that reads.
    void read(size_t i, size_t bytes) {
      if (i == parts.size() || ended) return;
      read_grpc_inference(frontend, call, protocol::TfExamplesCall(parts[i].request), bytes, parts[i].version, TfApi::kMultiInference,
                          [self = shared_from_this(), i, bytes](Result<Inference::Call> asked) {
                            self->start(i, std::move(asked));
                            self->read(i + 1, bytes);
                          });
    }

    void start(size_t i, Result<Inference::Call> asked) {
      if (ended || call->ended()) return;
      if (!asked) return refuse(asked.error());
      parts[i].inference = Inference::start(frontend.inferences(), std::move(*asked),
                                            [self = shared_from_this(), i](const Finished& done) { self->take(i, done); });
      if (!ended && !call->ended()) call->on_gone = [self = shared_from_this()] { self->cancel(); };
    }

    void take(size_t i, const Finished& done) {
      if (ended) return;
      if (!done.answer.outputs) return refuse(done.answer.outputs.error());
      parts[i].finished.emplace(done);
      if (--missing > 0) return;
      auto answer = answer_of_all();
      if (!answer) return refuse(answer.error());
      end();
      std::string framed = call->begin_message();
      answer->AppendToString(&framed);
      net::seal_grpc_message(framed);
      call->send(std::move(framed));
      call->finish(net::GrpcStatus::kOk);
    }

    Result<pb::MultiInferenceResponse> answer_of_all() {
      pb::MultiInferenceResponse answer;
      std::vector<Finished> finished;
      finished.reserve(parts.size());
      for (Part& part : parts) finished.push_back(part.finished->take());
      call->set_header("x-serin-batch", protocol::print_batch_tag(finished.front().answer.batch));
      call->set_header("x-serin-version", finished.front().version.version());
      for (const auto& [part, method] : tasks) {
        SERIN_CHECK(append_result(finished[part], method, answer));
      }
      return answer;
    }

    void refuse(const Error& error) {
      if (ended || call->ended()) return;
      end();
      call->set_header("x-serin-batch", protocol::print_batch_tag(frontend.host.lone_tag()));
      finish_with(*call, error);
      cancel();
    }
    void end() {
      ended = true;
      call->on_gone = nullptr;
    }
    /// Parts that are still under way answer to nobody.
    void cancel() {
      ended = true;
      for (Part& part : parts)
        if (part.inference) std::exchange(part.inference, nullptr)->cancel();
    }

    Frontend& frontend;
    const CallPtr call;
    std::vector<Part> parts;
    std::vector<std::pair<size_t, TfMethod>> tasks;  // part, method
    size_t missing = 0;
    bool ended = false;
  };

  Frontend& frontend_;
};

}  // namespace

std::unique_ptr<net::GrpcMethod> make_multi_inference(Frontend& frontend) { return std::make_unique<MultiInferenceMethod>(frontend); }

}  // namespace serin::serving
