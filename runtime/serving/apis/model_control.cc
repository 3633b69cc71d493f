// model_control.cc: from the io thread of who asks to the repository's thread, and back by way of all io threads: each of them holds on to the catalogue it saw
// last, and with it to the models that were in it.

#include "runtime/serving/apis/model_control.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>

namespace serin::serving {
namespace {

Result<ModelOverride> override_of(protocol::FlatValues parameters) {
  constexpr std::string_view kFile = "file:";
  ModelOverride overrides;
  for (auto& [key, value] : parameters) {
    auto* text = std::get_if<std::string>(&value);
    if (key != "config" && !key.starts_with(kFile)) continue;  // of extensions that this server does not announce
    if (!text)
      return invalid(
          fmt::format("parameter '{}' must be {}", key.substr(0, 128), key == "config" ? "a ModelConfig as JSON, in a text" : "base64"));
    if (key == "config")
      overrides.config = std::move(*text);
    else
      overrides.files[key.substr(kFile.size())] = std::move(*text);
  }
  if (parameters.contains("config") && overrides.config.empty()) return invalid("parameter 'config' is empty");
  return overrides;
}

/// Calls `done` on this io thread once all of them have looked at the catalogue.
Repository::Done on_this_thread(Frontend& frontend, Repository::Done done) {
  return [&frontend, loop = frontend.loops.here(), done = std::move(done)](const Status& status) {
    const auto left = std::make_shared<std::atomic<size_t>>(frontend.loops.size());
    for (size_t i = 0; i < frontend.loops.size(); ++i) {
      frontend.loops.post(i, [&frontend, loop, left, status, done] {
        (void)frontend.catalogue();
        if (left->fetch_sub(1) == 1) loop->post([done, status] { done(status); });
      });
    }
  };
}

}  // namespace

Status setting_changed(const Frontend& frontend, Status changed) {
  return in_dialect(frontend.dialect, std::move(changed), {Code::kPermissionDenied}, Code::kUnsupported);
}

Status add_region(Frontend& frontend, const SharedMemory::Region& region) {
  return in_dialect(frontend.dialect, frontend.shared_memory.add(region), {Code::kNotFound, Code::kInvalidArgument}, Code::kInternal);
}

Error no_cuda_region(std::string_view name) {
  return {Code::kNotFound, fmt::format("Unable to find cuda shared memory region: '{}'", name.substr(0, 256))};
}

void load_model(Frontend& frontend, const std::string& name, protocol::FlatValues parameters, Repository::Done done) {
  auto overrides = override_of(std::move(parameters));
  if (!overrides) return done(overrides.error());
  const auto say = [&frontend, done = std::move(done)](const Status& loaded) {
    done(in_dialect(frontend.dialect, loaded, {Code::kNotFound}, Code::kInternal));
  };
  frontend.repository.load_model(name, std::move(*overrides), on_this_thread(frontend, say));
}

void unload_model(Frontend& frontend, const std::string& name, const protocol::FlatValues& parameters, Repository::Done done) {
  bool dependents = false;
  if (const auto given = parameters.find("unload_dependents"); given != parameters.end()) {
    const auto* flag = std::get_if<bool>(&given->second);
    if (!flag) return done(invalid("parameter 'unload_dependents' must be true or false"));
    dependents = *flag;
  }
  auto answer = on_this_thread(frontend, std::move(done));
  if (frontend.dialect == Dialect::kTriton)  // whose clients unload before they know whether there is anything
    answer = [answer = std::move(answer)](Status unloaded) {
      answer(!unloaded && unloaded.error().code == Code::kNotFound ? Status() : std::move(unloaded));
    };
  frontend.repository.unload_model(name, dependents, std::move(answer));
}

void serve_roots(Frontend& frontend, std::vector<ModelRoot> roots, Repository::Done done) {
  frontend.repository.serve_roots(std::move(roots), on_this_thread(frontend, std::move(done)));
}

void reload(Frontend& frontend, std::shared_ptr<bool> changed, Repository::Done done) {
  frontend.repository.reload(std::move(changed), on_this_thread(frontend, std::move(done)));
}

}  // namespace serin::serving
