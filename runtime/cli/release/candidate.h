// candidate.h: the model that is to be released: its files, as the registry will have them.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/result.h"
#include "runtime/cli/offline/model_place.h"
#include "runtime/registry/registry.h"

namespace serin::cli {

struct Candidate {
  std::string given;  ///< as the user named it
  ModelPlace place;
  registry::Addition files;
  std::string content;  ///< digest of names and contents
};

/// `model`: as for find_model(). kUnsupported: settings that the registry does not carry.
Result<Candidate> find_candidate(const std::string& model);

/// Whether two models take and give the same tensors; names of open dimensions do not count. `details` as details_of() (registry/provenance.h)
/// has them. Nothing: they do, or one is not known. Else a sentence that names the difference.
std::optional<std::string> contract_difference(const std::string& details, const std::string& details_of_production);

}  // namespace serin::cli
