#include "runtime/serving/apis/control_api.h"

#include <fmt/format.h>

#include "runtime/protocol/oip/oip_rest.h"
#include "runtime/serving/apis/http_answers.h"
#include "runtime/serving/apis/message_json.h"
#include "runtime/serving/apis/model_control.h"
#include "runtime/serving/apis/nearest_path.h"
#include "runtime/serving/repository/model_queries.h"
#include "runtime/serving/settings/server_settings.h"

namespace serin::serving {
namespace {

using protocol::FlatValues;

constexpr std::string_view kModels = "/v2/repository/models/", kRepository = "/v2/repository/";
constexpr std::string_view kTraceOfModel = "/trace/setting", kOfModel = "/v2/models/";

/// What stands where the path has a name, between `before` and `after`; nothing where it is another path.
std::optional<std::string_view> between(std::string_view path, std::string_view before, std::string_view after) {
  if (!path.starts_with(before) || !path.ends_with(after) || path.size() <= before.size() + after.size()) return std::nullopt;
  const std::string_view name = path.substr(before.size(), path.size() - before.size() - after.size());
  return name.find('/') == std::string_view::npos ? std::optional(name) : std::nullopt;
}

/// <repository>/models/<model>/load or unload
bool names_repository(std::string_view path) {
  if (!path.starts_with(kRepository)) return false;
  path.remove_prefix(kRepository.size());
  take_segment(path);
  if (take_segment(path) != "models") return false;
  take_segment(path);
  return path == "load" || path == "unload";
}

/// GET tells, POST changes and tells.
template <class Tell, class Change>
net::Response settings(const Frontend& frontend, net::Request& request, const Tell& tell, const Change& change) {
  if (request.method == "POST") {
    const auto values = protocol::decode_flat_json(std::move(request.body));
    if (!values) return error_response(values.error());
    if (const Status changed = setting_changed(frontend, change(*values)); !changed) return error_response(changed.error());
  } else if (!is_get(request)) {
    return wrong_verb("GET, POST");
  }
  return json_response(protocol::encode_flat_json(tell()));
}

}  // namespace

bool ControlApi::serves(std::string_view path) const {
  for (const std::string_view prefix : {"/v2/repository/", "/v2/systemsharedmemory/", "/v2/cudasharedmemory/"})
    if (path.starts_with(prefix)) return true;
  return path == "/v2/logging" || path == "/v2/trace/setting" || between(path, kOfModel, kTraceOfModel);
}

void ControlApi::handle(net::Request&& given, net::Responder responder) {
  net::Request request = std::move(given);  // its memory is released here, not when the answer has left
  const std::string path = request.path;
  const auto repository = between(path, kRepository, "/index");  // which may be called "models"
  if (path.starts_with(kModels) && !repository && !names_repository(path))
    return control_model(std::string_view(path).substr(kModels.size()), request, std::move(responder));
  net::Response response = answer(request);
  response.headers.set("x-serin-batch", protocol::print_batch_tag(frontend_.host.lone_tag()));
  responder.send(std::move(response));
}

net::Response ControlApi::answer(net::Request& request) {
  const std::string path = request.path;
  if (path == "/v2/logging") return settings(frontend_, request, log_settings, change_log_settings);
  if (path == "/v2/trace/setting") return trace("", request);
  if (const auto model = between(path, kOfModel, kTraceOfModel)) return trace(*model, request);
  constexpr std::string_view kSystem = "/v2/systemsharedmemory/", kCuda = "/v2/cudasharedmemory/";
  if (path.starts_with(kSystem)) return shared_memory(std::string_view(path).substr(kSystem.size()), request);
  if (path == "/v2/cudasharedmemory/status") return is_get(request) ? json_response("[]") : wrong_verb("GET");
  if (path == "/v2/cudasharedmemory/unregister") return request.method == "POST" ? json_response("{}") : wrong_verb("POST");
  if (const auto region = between(path, "/v2/cudasharedmemory/region/", "/status"); region && is_get(request))
    return error_response(no_cuda_region(*region));
  if (between(path, "/v2/cudasharedmemory/region/", "/unregister"))  // one that is not there is no mistake
    return request.method == "POST" ? json_response("{}") : wrong_verb("POST");
  if (path.starts_with(kCuda)) return error_response({Code::kUnsupported, std::string(kNoCudaRegions)});
  if (path == "/v2/repository/index") return index("", request);
  if (const auto repository = between(path, kRepository, "/index")) return index(*repository, request);
  if (names_repository(path))
    return request.method == "POST" ? error_response({Code::kUnsupported, std::string(kNoRepositoryName)}) : wrong_verb("POST");
  return unknown_path(frontend_, request);
}

/// <model>/load or <model>/unload
void ControlApi::control_model(std::string_view path, net::Request& request, net::Responder responder) {
  const std::string model(take_segment(path));
  const std::string tag(protocol::print_batch_tag(frontend_.host.lone_tag()));
  struct Asking {
    net::Responder responder;
    MemoryBudget::Share share;  // of the files that came with it, for as long as they wait
  };
  const auto say = [asking = std::make_shared<Asking>(std::move(responder), std::move(request.share)), tag](net::Response response) {
    response.headers.set("x-serin-batch", tag);
    asking->responder.send(std::move(response));
  };
  if (path != "load" && path != "unload") return say(unknown_path(frontend_, request));
  if (request.method != "POST") return say(wrong_verb("POST"));
  auto parameters = protocol::decode_flat_json(std::move(request.body), "parameters");
  if (!parameters) return say(error_response(parameters.error(), "/parameters"));
  const auto done = [say](const Status& status) { say(status ? json_response("{}") : error_response(status.error())); };
  if (path == "unload") return unload_model(frontend_, model, *parameters, done);
  for (auto& [key, value] : *parameters) {
    auto* text = std::get_if<std::string>(&value);
    if (!text || !key.starts_with("file:")) continue;
    auto bytes = protocol::decode_base64_value(*text, key.substr(0, 128));
    if (!bytes) return say(error_response(bytes.error(), "/parameters"));
    *text = std::move(*bytes);
  }
  load_model(frontend_, model, std::move(*parameters), done);
}

net::Response ControlApi::index(std::string_view repository, const net::Request& request) {
  if (request.method != "POST") return wrong_verb("POST");
  const auto ready_only = protocol::decode_index_request(request.body);
  if (!ready_only) return error_response(ready_only.error(), "/ready");
  inference::RepositoryIndexRequest asked;
  asked.set_repository_name(std::string(repository));
  asked.set_ready(*ready_only);
  const auto found = repository_index(frontend_.catalogue(), asked);
  if (!found) return error_response(found.error());
  std::string body = "[";
  for (const auto& model : found->models()) {
    if (body.size() > 1) body += ',';
    append_json(body, model);
  }
  return json_response(body + "]");
}

/// [region/<name>/]status, register or unregister
net::Response ControlApi::shared_memory(std::string_view path, net::Request& request) {
  std::string name;
  if (path.starts_with("region/")) {
    path.remove_prefix(7);
    name = take_segment(path);
  }
  SharedMemory& regions = frontend_.shared_memory;
  if (path == "status") {
    if (!is_get(request)) return wrong_verb("GET");
    const auto found = regions.list(name);
    if (!found) return error_response(found.error());
    std::string body = "[";
    for (const SharedMemory::Region& region : *found) {
      body += fmt::format(R"({}{{"name":{},"key":{},"offset":{},"byte_size":{}}})", body.size() > 1 ? "," : "",
                          net::json_quote(region.name), net::json_quote(region.key), region.offset, region.byte_size);
    }
    return json_response(body + "]");
  }
  if (path != "register" && path != "unregister") return unknown_path(frontend_, request);
  if (request.method != "POST") return wrong_verb("POST");
  if (!frontend_.takes_regions) return error_response({Code::kUnsupported, std::string(kNoRegions)});
  if (path == "unregister") {
    regions.remove(name);
    return json_response("{}");
  }
  const auto values = protocol::decode_flat_json(std::move(request.body));
  if (!values) return error_response(values.error());
  for (const std::string_view needed : {"key", "byte_size"})
    if (!values->contains(needed))
      return error_response({Code::kInvalidArgument, fmt::format("Shared memory register request has no '{}' field", needed)});
  const auto number = [&](std::string_view key) {
    const auto value = values->find(key);
    if (value == values->end()) return int64_t{0};
    const auto* held = std::get_if<int64_t>(&value->second);
    return held ? *held : -1;
  };
  const auto* key = std::get_if<std::string>(&values->find("key")->second);
  const int64_t offset = number("offset"), bytes = number("byte_size");
  if (!key || bytes < 0 || offset < 0)
    return error_response({Code::kCorrupt, "'key' must be a name, 'byte_size' and 'offset' numbers of bytes that are not negative"});
  const Status added = add_region(frontend_, {name, *key, static_cast<uint64_t>(offset), static_cast<uint64_t>(bytes)});
  return added ? json_response("{}") : error_response(added.error());
}

net::Response ControlApi::trace(std::string_view model, net::Request& request) {
  if (!model.empty())
    if (const auto known = frontend_.catalogue().find(model, ""); !known && known.error().code == Code::kNotFound)
      return error_response(known.error());
  Tracer& tracer = frontend_.host.tracer;
  const auto change = [&](const FlatValues& changes) {
    if (changes.empty()) tracer.forget(model);  // as Triton: a model of which nothing is said is as all are
    return tracer.change(model, changes);
  };
  return settings(frontend_, request, [&] { return tracer.settings(model); }, change);
}

}  // namespace serin::serving
