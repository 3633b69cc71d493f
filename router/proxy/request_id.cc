#include "router/proxy/request_id.h"

#include <algorithm>
#include <span>

#include "router/outcomes/assignment.h"
#include "runtime/base/number.h"
#include "runtime/base/wire.h"
#include "runtime/net/grpc.h"
#include "runtime/protocol/oip/oip_rest.h"

namespace serin::router {
namespace {

constexpr size_t kLongestId = 128;

bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= kLongestId && std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

/// Of a ModelInferRequest; empty: it is compressed, or has none.
std::string_view id_in_call(std::string_view body) {
  constexpr uint32_t kId = 3;
  if (body.size() < net::GrpcPrefix::kBytes || body.front() != 0) return {};
  const wire::Bytes bytes = std::as_bytes(std::span(body.substr(net::GrpcPrefix::kBytes)));
  wire::Decoding decoding{.begin = bytes.data()};
  wire::Message request(decoding, "ModelInferRequest", bytes);
  std::string_view id;
  while (request.next())
    if (request.field() == kId) id = request.chars();
  return decoding.error ? std::string_view() : id;
}

std::string id_in_json(const net::Headers& headers, std::string_view body, protocol::JsonPointerReader& json) {
  if (headers.has("content-encoding")) return {};
  if (const std::string_view length = headers.get(protocol::kJsonLength); !length.empty())
    body = body.substr(0, parse_number<size_t>(length).value_or(0));
  return json.read(body, "/id");
}

}  // namespace

std::string request_id_of(const net::Head& request, const Target& target, std::string_view body, protocol::JsonPointerReader& json,
                          uint64_t drawn) {
  if (const std::string_view given = request.headers.get(kRequestId); is_id(given)) return std::string(given);
  const bool has_id =
      target.grpc ? target.naming == Naming::kFields : target.model && (target.rest == "/infer" || target.rest == "/generate");
  if (has_id && !body.empty())
    if (std::string id = target.grpc ? std::string(id_in_call(body)) : id_in_json(request.headers, body, json); is_id(id)) return id;
  std::string id;
  append_id(id, drawn);
  return id;
}

}  // namespace serin::router
