// recorded_inputs.h: Inputs of a model from requests that a router has recorded (router/recording/recording_file.h).
//
//   SERIN_TRY(const RecordedInputs recorded, read_recorded_inputs(flags, signature));
//   for (const RecordedInput& request : recorded.requests) ... model.run(request.values)
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/value.h"
#include "runtime/protocol/infer.h"

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 has it
class App;
}

namespace serin::cli {

struct RecordingFlags {
  std::string file;     ///< `recording.file` of router.yaml; empty: none is read
  std::string key;      ///< `recording.key`
  std::string service;  ///< empty: the name of the file without its ending
  std::string request;  ///< its ID; empty: the newest ones
  int64_t latest = 100;
};
void add_recording_flags(CLI::App& command, RecordingFlags& flags);

struct RecordedInput {
  std::string id;  ///< that of the client, else one made of the request's contents
  std::string at;  ///< time (RFC 3339, UTC)
  std::vector<engine::Value> values;
};
struct UnfitRequest {
  std::string id, why;
};
struct RecordedInputs {
  std::vector<RecordedInput> requests;  ///< newest first
  std::vector<UnfitRequest> unfit;      ///< what the model cannot be given, such as a request whose inputs were redacted
};

/// Reads each with the codec of its protocol. kInvalidArgument: a flag or the key file is wrong. kNotFound: no file, or no request with that ID.
/// kCorrupt: damaged, or another key or service. If no request fits: the reason of the newest one.
Result<RecordedInputs> read_recorded_inputs(const RecordingFlags& flags, const protocol::Signature& signature);

}  // namespace serin::cli
