// oip_grpc.h: a codec for the two inference messages of the Open Inference Protocol v2 over gRPC; it copies tensors once.
//
// All other messages are small and rare, and use protobuf's own code (proto/).
//
//   SERIN_TRY(const GrpcInferRequest message, GrpcInferRequest::read(bytes));
//   ... find the version of message.model ...
//   Result<InferRequest> request = message.decode(signature);
//
// Tensors arrive as bytes (raw_input_contents, for all or for none) or as typed contents; answers have bytes.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/wire.h"
#include "runtime/protocol/infer.h"

namespace serin::protocol {

/// A ModelInferRequest. Its parts are views of the message, which must outlive it.
struct GrpcInferRequest {
  std::string_view model, version, id;
  Few<wire::Bytes> inputs, outputs, parameters;  ///< InferInputTensor, InferRequestedOutputTensor, entries of the map
  Few<std::string_view> raw;                     ///< raw_input_contents
  const std::byte* begin = nullptr;              ///< start of the message: offsets in errors count from here

  /// kInvalidArgument if it is not such a message.
  static Result<GrpcInferRequest> read(std::string_view message);
  /// Returns the id of a message of which only the beginning has arrived; empty if it is not in that part.
  static std::string_view id_of(std::string_view beginning);
  /// Like decode_infer_request(). Errors are the client's.
  Result<InferRequest> decode(const Signature& signature, const RequestLimits& limits = {}, InferRequest memory = {}) const;
};

/// Appends a ModelInferResponse.
void append_grpc_response(std::string& out, const InferResponse& response);
/// Upper bound, nearly exact, of the bytes that append_grpc_response() appends.
size_t grpc_response_bytes(const InferResponse& response);

}  // namespace serin::protocol
