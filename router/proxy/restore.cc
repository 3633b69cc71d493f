#include "router/proxy/restore.h"

#include "runtime/net/target.h"

namespace serin::router {

bool restore(const RecordedRequest& request, std::string_view service, net::Head& head, Target& target) {
  head.clear();
  head.method = request.method;
  head.target = request.target;
  if (net::decode_target(request.target, head.path, head.query)) return false;
  for (const auto& [name, value] : request.headers) head.headers.add(name, value);
  if (request.grpc) {
    const ModelMethod* const method = request.names_model ? find_model_method(head.path) : nullptr;
    target = {.service = service, .infer = true, .grpc = true, .naming = method ? method->naming : Naming::kNone};
    return true;
  }
  const auto parsed = parse_target(head);
  if (parsed) target = *parsed;
  return parsed.has_value();
}

}  // namespace serin::router
