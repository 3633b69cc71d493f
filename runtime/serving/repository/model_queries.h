// model_queries.h: what clients ask about models, the same over REST and gRPC: functions of the catalogue. Errors: kNotFound, kUnavailable, kUnsupported.
#pragma once

#include "inference.pb.h"
#include "runtime/serving/repository/repository.h"

namespace serin::serving {

Result<inference::ModelMetadataResponse> model_metadata(const Catalogue& now, const inference::ModelMetadataRequest& request);
Result<inference::ModelReadyResponse> model_ready(const Catalogue& now, const inference::ModelReadyRequest& request);
/// As config.pbtxt would say it, all defaults filled in (full_model_config).
Result<inference::ModelConfigResponse> model_config(const Catalogue& now, const inference::ModelConfigRequest& request);
/// Every version with its state: LOADING, READY or UNAVAILABLE with the reason; of a model that nobody loaded its name alone.
Result<inference::RepositoryIndexResponse> repository_index(const Catalogue& now, const inference::RepositoryIndexRequest& request);
/// What was counted since a version was loaded; of all versions where none is named.
Result<inference::ModelStatisticsResponse> model_statistics(const Catalogue& now, const inference::ModelStatisticsRequest& request);

}  // namespace serin::serving
