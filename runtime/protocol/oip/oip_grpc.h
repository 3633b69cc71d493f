// oip_grpc.h: the Open Inference Protocol v2 over gRPC, the two messages that every inference takes: a codec that copies tensors once. All other
// messages are small and rare, and protobuf's own (proto/).
//
//   SERIN_TRY(const GrpcInferRequest message, GrpcInferRequest::read(bytes));
//   ... find the version of message.model ...
//   Result<InferRequest> request = message.decode(signature);
//
// Tensors come as bytes (raw_input_contents, all of them or none) or as typed contents; they go as bytes.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/wire.h"
#include "runtime/protocol/infer.h"

namespace serin::protocol {

/// A ModelInferRequest, its parts where they lie in the message, which must outlive it.
struct GrpcInferRequest {
  std::string_view model, version, id;
  Few<wire::Bytes> inputs, outputs, parameters;  ///< InferInputTensor, InferRequestedOutputTensor, entries of the map
  Few<std::string_view> raw;                     ///< raw_input_contents
  const std::byte* begin = nullptr;              ///< of the message: offsets in errors count from here

  /// kInvalidArgument where it is no such message.
  static Result<GrpcInferRequest> read(std::string_view message);
  /// Of a message of which no more than this has come; empty where it is not in that.
  static std::string_view id_of(std::string_view beginning);
  /// As decode_infer_request(). Errors are the client's.
  Result<InferRequest> decode(const Signature& signature, const RequestLimits& limits = {}, InferRequest memory = {}) const;
};

/// Appends a ModelInferResponse.
void append_grpc_response(std::string& out, const InferResponse& response);
/// What append_grpc_response() takes, or a little more.
size_t grpc_response_bytes(const InferResponse& response);

}  // namespace serin::protocol
