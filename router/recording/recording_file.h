// recording_file.h: The file of a service's recorded requests, encrypted (sealed_file.h): for the router that goes on with it, and for
// `serin compare`.
#pragma once

#include <string>
#include <vector>

#include "router/config/sealed_file.h"
#include "router/recording/recorded_request.h"
#include "runtime/base/result.h"

namespace serin::router {

struct RecordingFile {
  std::vector<std::string> headers, redact;  ///< the settings with which the requests were recorded
  Recording requests;                        ///< oldest first
};

/// kNotFound; kCorrupt: damaged, or written with another key or for another service.
Result<RecordingFile> read_recording_file(const std::string& path, const SealingKey& key, const std::string& service);
/// The whole file replaces `path` in one step.
Status write_recording_file(const std::string& path, const SealingKey& key, const std::string& service, const RecordingFile& file);

}  // namespace serin::router
