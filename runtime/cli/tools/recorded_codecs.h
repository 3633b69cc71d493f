// recorded_codecs.h: The tensors of a recorded request, read with the codec of its protocol.
#pragma once

#include "router/proxy/rewrite.h"
#include "router/recording/recorded_request.h"
#include "runtime/base/result.h"
#include "runtime/net/message/head_parser.h"
#include "runtime/protocol/infer.h"

namespace serin::cli {

/// `head`, `target`: of the request (router/proxy/restore.h). Errors are those of the codecs, with the place in the body. kUnsupported: a path,
/// a method or a coding that none of the protocols has. kCorrupt: a body that cannot be decompressed.
Result<protocol::InferRequest> decode_recorded(const router::RecordedRequest& request, const net::Head& head, const router::Target& target,
                                               const protocol::Signature& signature);

}  // namespace serin::cli
