// model_control.h: load and unload as clients ask for them, the same over REST and gRPC.
#pragma once

#include <string_view>

#include "runtime/protocol/flat_json.h"
#include "runtime/serving/frontend.h"

namespace serin::serving {

/// Of orders that say in which repository: Triton has no word for several either.
inline constexpr std::string_view kNoRepositoryName = "'repository_name' specification is not supported: a model's name says where it lies";

/// Loads a model with what the parameters of the request put in place of its files: `config`, a text, and `file:<version>/<name>`, bytes. `done` is called on this
/// io thread; every io thread has seen what is loaded by then.
void load_model(Frontend& frontend, const std::string& name, protocol::FlatValues parameters, Repository::Done done);
/// `unload_dependents`, true or false.
void unload_model(Frontend& frontend, const std::string& name, const protocol::FlatValues& parameters, Repository::Done done);

/// As Repository::serve_roots() and Repository::reload().
void serve_roots(Frontend& frontend, std::vector<ModelRoot> roots, Repository::Done done);
void reload(Frontend& frontend, std::shared_ptr<bool> changed, Repository::Done done);

}  // namespace serin::serving
