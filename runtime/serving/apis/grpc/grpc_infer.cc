// grpc_infer.cc: ModelInfer, one inference a call, and ModelStreamInfer, any number of them over one.

#include <fmt/format.h>

#include <unordered_map>

#include "runtime/base/wire_writer.h"
#include "runtime/protocol/oip/oip_grpc.h"
#include "runtime/serving/apis/grpc/grpc_api.h"
#include "runtime/serving/apis/grpc/grpc_inference.h"

namespace serin::serving {
namespace {

using net::GrpcCall;
using net::GrpcStatus;
using CallPtr = std::shared_ptr<GrpcCall>;

constexpr size_t kMostAtOnce = 128;  // of one stream; over it the client is not read from

/// then(Result<Inference::Call>), as read_grpc_inference().
template <class Then>
void read_request(Frontend& frontend, const CallPtr& call, std::string_view message, Then then) {
  index_grpc(call, message, protocol::GrpcInferRequest::read,
             [&frontend, call, message, then = std::move(then)](Result<protocol::GrpcInferRequest> request) mutable {
               if (!request) return then(Result<Inference::Call>(request.error()));
               size_t raw = 0;  // copied as they are
               for (const std::string_view input : request->raw) raw += input.size();
               size_t work = message.size() - raw + raw / kBinaryIsFaster;
               if (work <= net::kMostOnIo) work += work_in_regions(frontend.shared_memory, message);
               auto version = frontend.catalogue().find(request->model, request->version);
               read_grpc_inference(frontend, call, std::move(*request), work, std::move(version), TfApi::kInfer, std::move(then));
             });
}

Status append_response(std::string& out, const Finished& finished) {
  const Version& version = finished.version;
  const OutputViews views(finished);
  const auto outputs = named_outputs(finished, views);
  const protocol::InferResponse response{version.model(), version.version(), finished.id, outputs};
  SERIN_CHECK(write_shared(response.outputs));
  out.reserve(out.size() + protocol::grpc_response_bytes(response));
  protocol::append_grpc_response(out, response);
  return {};
}

class InferMethod final : public net::GrpcMethod {
 public:
  explicit InferMethod(Frontend& frontend) : frontend_(frontend) {}

  void on_message(const CallPtr& call, std::string_view message) override {
    read_request(frontend_, call, message,
                 [this, call](Result<Inference::Call> asked) { start_grpc_inference(frontend_, call, std::move(asked), append_response); });
  }

 private:
  Frontend& frontend_;
};

/// Answers go out as they are ready. One that fails is told in its answer and the stream goes on, unless the client asked for the statuses of gRPC.
class StreamInferMethod final : public net::GrpcMethod {
 public:
  explicit StreamInferMethod(Frontend& frontend) : frontend_(frontend) {}
  bool many_messages() const override { return true; }

  void on_message(const CallPtr& call, std::string_view message) override {
    Stream& stream = stream_of(call);
    const uint64_t number = stream.next++;
    stream.running.emplace(number, nullptr);
    read_request(frontend_, call, message, [this, call, number, message](Result<Inference::Call> asked) {
      if (asked) return start(call, number, std::move(*asked));
      fail(*call, asked.error(), protocol::GrpcInferRequest::id_of(message.substr(0, net::kMostOnIo)));
      leave(call, number);
    });
  }

  bool on_no_memory(const CallPtr& call, std::string_view beginning) override {
    fail(*call, {Code::kOverloaded, "too many large messages are under way; try again"}, protocol::GrpcInferRequest::id_of(beginning));
    return true;
  }

  void on_half_close(const CallPtr& call) override {
    Stream& stream = stream_of(call);
    stream.half_closed = true;
    end_if_idle(*call);
  }

 private:
  struct Stream {
    std::unordered_map<uint64_t, std::shared_ptr<Inference>> running;
    uint64_t next = 0;
    bool half_closed = false;
    bool ends = false;  // and so does the server
  };

  void start(const CallPtr& call, uint64_t number, Inference::Call asked) {
    auto inference = Inference::start(frontend_.inferences(), std::move(asked),
                                      [call, number](const Finished& finished) { answer(call, number, finished); });
    if (call->ended()) return;
    Stream& stream = stream_of(call);
    if (const auto running = stream.running.find(number); running != stream.running.end()) running->second = std::move(inference);
    if (stream.running.size() >= kMostAtOnce) call->pause();
  }

  /// It is answered.
  static void leave(const CallPtr& call, uint64_t number) {
    if (call->ended()) return;
    Stream& stream = stream_of(call);
    stream.running.erase(number);
    end_if_idle(*call);
    if (call->ended()) return;
    if (stream.running.size() < kMostAtOnce / 2) call->resume();
  }

  static void end_if_idle(GrpcCall& call) {
    const Stream& stream = *static_cast<Stream*>(call.state.get());
    if (!stream.running.empty()) return;
    if (stream.half_closed) return call.finish(GrpcStatus::kOk);
    if (stream.ends) call.finish(GrpcStatus::kUnavailable, "the server ends");
  }

  static Stream& stream_of(const CallPtr& call) {
    if (!call->state) {
      auto stream = std::make_shared<Stream>();
      call->on_gone = [stream] {
        const auto running = std::move(stream->running);
        for (const auto& [number, inference] : running)
          if (inference) inference->cancel();
      };
      call->on_drain = [weak = std::weak_ptr(call)] {
        const auto still = weak.lock();
        if (!still) return;
        stream_of(still).ends = true;
        end_if_idle(*still);
      };
      call->state = std::move(stream);
    }
    return *static_cast<Stream*>(call->state.get());
  }

  static void answer(const CallPtr& call, uint64_t number, const Finished& finished) {
    if (call->ended()) return;
    write_grpc_answer(call, finished, {}, append_stream_response,
                      [call, number, id = std::string(finished.id)](Result<std::string> framed) {
                        if (framed)
                          call->send(std::move(*framed));
                        else
                          fail(*call, framed.error(), id);
                        leave(call, number);
                      });
  }

  /// Framed.
  static Status append_stream_response(std::string& out, const Finished& finished) {
    std::string response;
    SERIN_CHECK(append_response(response, finished));
    append_final(response);
    out = framed({}, response);
    return {};
  }

  /// Clients of models that answer several times wait for it; here every answer is the last to its request.
  static void append_final(std::string& response) {
    wire::write_message(response, 4, [](std::string& parameter) {
      wire::write_text(parameter, 1, "triton_final_response");
      wire::write_message(parameter, 2, [](std::string& value) {
        wire::write_tag(value, 1, 0);  // bool_param
        wire::write_varint(value, 1);
      });
    });
  }

  static std::string framed(std::string_view error_message, std::string_view infer_response) {
    std::string framed = net::begin_grpc_message(error_message.size() + infer_response.size() + 32);
    if (!error_message.empty()) wire::write_bytes(framed, 1, error_message);
    if (!infer_response.empty()) wire::write_bytes(framed, 2, infer_response);
    net::seal_grpc_message(framed);
    return framed;
  }

  static void fail(GrpcCall& call, const Error& error, std::string_view id) {
    if (call.headers().get("triton_grpc_error") == "true") return finish_with(call, error);
    std::string which;  // of the requests of this stream
    if (!id.empty()) wire::write_text(which, 3, id);
    call.send(framed(error.message, which));
  }

  Frontend& frontend_;
};

}  // namespace

void add_inference_methods(Frontend& frontend, GrpcMethodMap& methods) {
  methods.emplace("/inference.GRPCInferenceService/ModelInfer", std::make_unique<InferMethod>(frontend));
  methods.emplace("/inference.GRPCInferenceService/ModelStreamInfer", std::make_unique<StreamInferMethod>(frontend));
}

}  // namespace serin::serving
