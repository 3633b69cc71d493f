// unary_method.h: gRPC methods that map one protobuf message to another, or that execute an admin request.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/serving/apis/grpc/grpc_api.h"
#include "runtime/serving/repository/repository.h"

namespace serin::serving {

template <class Request, class Answer>
class UnaryMethod final : public net::GrpcMethod {
 public:
  using Work = std::function<Result<Answer>(const Request&)>;
  explicit UnaryMethod(Work work) : work_(std::move(work)) {}

  void on_message(const std::shared_ptr<net::GrpcCall>& call, std::string_view message) override {
    Request request;
    if (!parse(request, message)) return finish_with(*call, {Code::kInvalidArgument, "the message is no " + request.GetTypeName()});
    const Result<Answer> answer = work_(request);
    if (!answer) return finish_order_with(*call, answer.error());
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

/// A call that is answered later, with an empty message.
template <class Request, class Answer>
class OrderMethod final : public net::GrpcMethod {
 public:
  using Work = std::function<void(const Request&, Repository::Done)>;
  explicit OrderMethod(Work work) : work_(std::move(work)) {}

  void on_message(const std::shared_ptr<net::GrpcCall>& call, std::string_view message) override {
    Request request;
    if (!parse(request, message)) return finish_with(*call, {Code::kInvalidArgument, "the message is no " + request.GetTypeName()});
    work_(request, [call](const Status& status) {
      if (call->ended()) return;
      if (!status) return finish_order_with(*call, status.error());
      call->send(net::grpc_framed(Answer().SerializeAsString()));
      call->finish(net::GrpcStatus::kOk);
    });
  }

 private:
  const Work work_;
};

}  // namespace serin::serving
