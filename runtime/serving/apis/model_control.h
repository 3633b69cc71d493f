// model_control.h: what clients order, the same over REST and gRPC: to load and unload models, to take memory and change settings.
#pragma once

#include <string_view>

#include "runtime/protocol/json/flat_json.h"
#include "runtime/serving/apis/frontend.h"

namespace serin::serving {

/// Of orders that say in which repository: Triton has no word for several either.
inline constexpr std::string_view kNoRepositoryName = "'repository_name' specification is not supported: a model's name says where it lies";

/// What came of a change to the settings of the log or of traces. To Triton's clients a file that they may not name is something that the server does not have.
Status setting_changed(const Frontend& frontend, Status changed);
/// As SharedMemory::add(). To Triton's clients the server is at fault whatever is wrong about the memory.
Status add_region(Frontend& frontend, const SharedMemory::Region& region);

/// Of CUDA devices there is no memory that has a name.
Error no_cuda_region(std::string_view name);

/// Loads a model with what the parameters of the request put in place of its files: `config`, a text, and `file:<version>/<name>`, bytes. `done` is called on this
/// io thread; every io thread has seen what is loaded by then.
void load_model(Frontend& frontend, const std::string& name, protocol::FlatValues parameters, Repository::Done done);
/// `unload_dependents`, true or false.
void unload_model(Frontend& frontend, const std::string& name, const protocol::FlatValues& parameters, Repository::Done done);

/// As Repository::serve_roots() and Repository::reload().
void serve_roots(Frontend& frontend, std::vector<ModelRoot> roots, Repository::Done done);
void reload(Frontend& frontend, std::shared_ptr<bool> changed, Repository::Done done);

}  // namespace serin::serving
