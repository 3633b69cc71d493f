// model_control.h: executes clients' admin requests, for REST and gRPC: load and unload models, register memory, change settings.
#pragma once

#include <string_view>

#include "runtime/protocol/json/flat_json.h"
#include "runtime/serving/apis/frontend.h"

namespace serin::serving {

/// Error for requests that name a repository: Triton does not support several either.
inline constexpr std::string_view kNoRepositoryName = "'repository_name' specification is not supported: a model's name says where it lies";

/// Converts the result of a change to the log or trace settings. In Triton's dialect, a file that clients may not name is unsupported.
Status setting_changed(const Frontend& frontend, Status changed);
/// Like SharedMemory::add(). In Triton's dialect, errors about the memory are server errors.
Status add_region(Frontend& frontend, const SharedMemory::Region& region);

/// CUDA devices have no memory with a name.
Error no_cuda_region(std::string_view name);

/// Loads a model. Parameters of the request may replace its files: `config`, a text, and `file:<version>/<name>`, bytes. `done` is called
/// on this io thread, after every io thread has seen the loaded model.
void load_model(Frontend& frontend, const std::string& name, protocol::FlatValues parameters, Repository::Done done);
/// Reads the parameter `unload_dependents`, true or false.
void unload_model(Frontend& frontend, const std::string& name, const protocol::FlatValues& parameters, Repository::Done done);

/// Like Repository::serve_roots() and Repository::reload().
void serve_roots(Frontend& frontend, std::vector<ModelRoot> roots, Repository::Done done);
void reload(Frontend& frontend, std::shared_ptr<bool> changed, Repository::Done done);

}  // namespace serin::serving
