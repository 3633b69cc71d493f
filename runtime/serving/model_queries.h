// model_queries.h: what clients ask about models, the same over REST and gRPC: functions of the catalogue. Errors: kNotFound, kUnavailable, kUnsupported.
#pragma once

#include "inference.pb.h"
#include "runtime/serving/repository.h"

namespace serin::serving {

inline constexpr std::string_view kPlatform = "onnx_serin";

Result<inference::ModelMetadataResponse> model_metadata(const Catalogue& now, const inference::ModelMetadataRequest& request);
Result<inference::ModelReadyResponse> model_ready(const Catalogue& now, const inference::ModelReadyRequest& request);
/// Every version with its state: LOADING, READY or UNAVAILABLE with the reason.
Result<inference::RepositoryIndexResponse> repository_index(const Catalogue& now, const inference::RepositoryIndexRequest& request);
/// What was counted since a version was loaded; of all versions where none is named.
Result<inference::ModelStatisticsResponse> model_statistics(const Catalogue& now, const inference::ModelStatisticsRequest& request);

}  // namespace serin::serving
