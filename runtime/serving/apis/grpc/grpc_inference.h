// grpc_inference.h: one inference over gRPC, the same for every service: reading the request, and the answer of a unary call.
//
// Large messages are decoded and encoded on helper threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/net/loop.h"
#include "runtime/serving/apis/grpc/grpc_api.h"
#include "runtime/serving/apis/inference.h"

namespace serin::serving {

/// If decoding failed, the request counts as a failed one of its model.
Result<Inference::Call> with_request(Inference::Call asked, Result<protocol::InferRequest> decoded);
/// The error of a call that ended before its request was read.
Error grpc_call_ended(const net::GrpcCall& call);

/// Call it from on_message(). read() -> Result<Message> locates the parts of the message. then(Result<Message>) is called once, at once, or
/// for a large message after a helper thread has read it. It is not called if the call has ended by then.
template <class Read, class Then>
void index_grpc(const std::shared_ptr<net::GrpcCall>& call, std::string_view message, Read read, Then then) {
  if (message.size() <= net::kMostOnIo) return then(read(message));
  struct Indexing {
    Read read;
    Then then;
    decltype(read(message)) index = Error{Code::kInternal, "the message was not read"};  // if reading throws
  };
  const auto indexing = std::make_shared<Indexing>(std::move(read), std::move(then));
  call->read_aside([indexing, message] { indexing->index = indexing->read(message); },
                   [indexing, call] {
                     if (!call->ended()) indexing->then(std::move(indexing->index));
                   });
}

/// Decodes a message. Large messages do not need `memory`, and those of TensorFlow never do.
template <class Message>
Result<protocol::InferRequest> decode_grpc(const Message& message, const Inference::Call& asked, const protocol::RequestLimits& limits,
                                           protocol::InferRequest memory) {
  const protocol::Signature& signature = asked.version->signature();
  if constexpr (requires { message.decode(signature, limits, std::move(memory)); })
    return message.decode(signature, limits, std::move(memory));
  else
    return message.decode(signature, limits);
}

/// Call it from on_message(), with its message. then(Result<Inference::Call>) is called once, at once or after decoding. It is not called
/// if the call has ended by then. `work`: cost of decoding, in bytes of JSON.
template <class Message, class Then>
void read_grpc_inference(Frontend& frontend, const std::shared_ptr<net::GrpcCall>& call, Message&& message, size_t work,
                         Result<std::shared_ptr<Version>> version, TfApi api, Then then) {
  if (!version) return then(Result<Inference::Call>(version.error()));
  Inference::Call asked{.version = std::move(*version),
                        .arrived = Clock::now(),
                        .deadline = call->deadline(),
                        .shadow = call->headers().get("x-serin-shadow") == "1",
                        .door = Trace::Door::kGrpc,
                        .api = api,
                        .received = call->loop().now()};
  if (work <= net::kMostOnIo) {
    auto decoded = decode_grpc(message, asked, frontend.limits, frontend.inferences().take_request());
    return then(with_request(std::move(asked), std::move(decoded)));
  }
  struct Reading {
    Message message;
    Inference::Call asked;
    Then then;
    Result<protocol::InferRequest> decoded = Error{Code::kInternal, "the message was not read"};  // if reading throws
  };
  const auto reading = std::make_shared<Reading>(std::forward<Message>(message), std::move(asked), std::move(then));
  call->read_aside([reading, &frontend] { reading->decoded = decode_grpc(reading->message, reading->asked, frontend.limits, {}); },
                   [reading, call] {
                     if (call->ended()) reading->decoded = grpc_call_ended(*call);
                     auto made = with_request(std::move(reading->asked), std::move(reading->decoded));
                     if (!call->ended()) reading->then(std::move(made));
                   });
}

/// append(out, finished) -> Status writes a message once the outputs exist; then(Result<std::string>) receives the message, which begins
/// with `framed`. It is called once. A large answer is written on a helper thread, unless the call ends first. A small answer is written at
/// once, and so is an answer of a sequence, because later answers of its stream must follow in order.
template <class Append, class Then>
void write_grpc_answer(const std::shared_ptr<net::GrpcCall>& call, const Finished& finished, std::string framed, Append append, Then then) {
  const auto write = [](const Append& how, std::string out, const Finished& what) -> Result<std::string> {
    SERIN_CHECK(how(out, what));
    return out;
  };
  if (!finished.answer.outputs) return then(Result<std::string>(finished.answer.outputs.error()));
  if (finished.version.stateful() || work_to_encode(finished, /*binary=*/true) <= net::kMostOnIo)
    return then(write(append, std::move(framed), finished));
  struct Writing {
    KeptFinished finished;
    std::string framed;
    Append append;
    Then then;
    Result<std::string> written = Error{Code::kInternal, "the answer was not written"};  // if writing throws
  };
  const auto writing = std::make_shared<Writing>(KeptFinished(finished), std::move(framed), std::move(append), std::move(then));
  call->write_aside([writing, write] { writing->written = write(writing->append, std::move(writing->framed), writing->finished.take()); },
                    [writing] { writing->then(std::move(writing->written)); });
}

/// For a unary call; `append` as above.
template <class Append>
void start_grpc_inference(Frontend& frontend, const std::shared_ptr<net::GrpcCall>& call, Result<Inference::Call> asked, Append append) {
  if (!asked) {
    call->set_header("x-serin-batch", protocol::print_batch_tag(frontend.host.lone_tag()));
    return finish_with(*call, asked.error());
  }
  const auto inference =
      Inference::start(frontend.inferences(), std::move(*asked), [call, append = std::move(append)](const Finished& finished) {
        call->set_header("x-serin-batch", protocol::print_batch_tag(finished.answer.batch));
        call->set_header("x-serin-version", finished.version.version());
        write_grpc_answer(call, finished, call->begin_message(), append, [call](Result<std::string> framed) {
          if (!framed) return finish_with(*call, framed.error());
          net::seal_grpc_message(*framed);
          call->send(std::move(*framed));
          call->finish(net::GrpcStatus::kOk);
        });
      });
  if (!call->ended()) call->on_gone = [inference] { inference->cancel(); };
}

}  // namespace serin::serving
