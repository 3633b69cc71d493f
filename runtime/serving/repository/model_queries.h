// model_queries.h: answers clients' queries about models from the catalogue, for REST and gRPC. Errors: kNotFound, kUnavailable,
// kUnsupported.
#pragma once

#include "inference.pb.h"
#include "runtime/serving/repository/repository.h"

namespace serin::serving {

Result<inference::ModelMetadataResponse> model_metadata(const Catalogue& now, const inference::ModelMetadataRequest& request);
Result<inference::ModelReadyResponse> model_ready(const Catalogue& now, const inference::ModelReadyRequest& request);
/// Returns the configuration in the form of config.pbtxt, with all defaults (full_model_config).
Result<inference::ModelConfigResponse> model_config(const Catalogue& now, const inference::ModelConfigRequest& request);
/// Returns every version with its state: LOADING, READY or UNAVAILABLE with the reason; for a model that is not loaded, only its name.
Result<inference::RepositoryIndexResponse> repository_index(const Catalogue& now, const inference::RepositoryIndexRequest& request);
/// Returns the counts since a version was loaded; for all versions if none is named.
Result<inference::ModelStatisticsResponse> model_statistics(const Catalogue& now, const inference::ModelStatisticsRequest& request);

}  // namespace serin::serving
