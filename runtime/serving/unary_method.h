// unary_method.h: a method of gRPC that is a function from one message of protobuf to another.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/serving/grpc_api.h"

namespace serin::serving {

template <class Request, class Answer>
class UnaryMethod final : public net::GrpcMethod {
 public:
  using Work = std::function<Result<Answer>(const Request&)>;
  explicit UnaryMethod(Work work) : work_(std::move(work)) {}

  void on_message(const std::shared_ptr<net::GrpcCall>& call, std::string_view message) override {
    Request request;
    if (!request.ParseFromArray(message.data(), static_cast<int>(message.size())))
      return finish_with(*call, {Code::kInvalidArgument, "the message is no " + request.GetTypeName()});
    const Result<Answer> answer = work_(request);
    if (!answer) return finish_with(*call, answer.error());
    std::string framed = net::begin_grpc_message(answer->ByteSizeLong());
    answer->AppendToString(&framed);
    net::seal_grpc_message(framed);
    call->send(std::move(framed));
    call->finish(net::GrpcStatus::kOk);
  }

 private:
  const Work work_;
};

template <class Request, class Answer>
void add_unary(GrpcMethodMap& methods, std::string path, typename UnaryMethod<Request, Answer>::Work work) {
  methods.emplace(std::move(path), std::make_unique<UnaryMethod<Request, Answer>>(std::move(work)));
}

}  // namespace serin::serving
