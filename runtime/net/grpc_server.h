// grpc_server.h: serves gRPC calls: messages in, messages out, a status at the end.
//
//   class Echo : public GrpcMethod {
//     void on_message(const std::shared_ptr<GrpcCall>& call, std::string_view message) override {
//       call->send(grpc_framed(message));
//       call->finish(GrpcStatus::kOk);
//     }
//   };
//   start_grpc_server(loops, options, [&](std::string_view path) { return path == "/echo.Echo/Say" ? &echo : nullptr; });
//
// One call is one HTTP/2 stream. Everything runs on the io thread that owns its connection, except long work (read_aside). A compressed
// message (gzip, deflate, zstd) is decompressed within Limits::body_bytes. If more than kMostOnIo bytes result, that runs on a helper
// thread. Answers are not compressed. Source: github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md.
#pragma once

#include <memory>

#include "runtime/base/result.h"
#include "runtime/net/grpc_method.h"
#include "runtime/net/loop.h"
#include "runtime/net/server.h"

namespace serin::net {

/// Starts a server that speaks gRPC only: other requests are answered with 415. Errors are those of Server::start().
Result<std::unique_ptr<Server>> start_grpc_server(Loops& loops, ServerOptions options, GrpcMethods methods, GrpcGate gate = {});

}  // namespace serin::net
