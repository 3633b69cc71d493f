#include "runtime/cli/tools/recorded_inputs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <filesystem>
#include <optional>

#include "router/proxy/request_id.h"
#include "router/proxy/restore.h"
#include "router/recording/recording_file.h"
#include "runtime/base/json_at.h"
#include "runtime/cli/tools/recorded_codecs.h"
#include "runtime/cli/tools/tensor_value.h"
#include "runtime/registry/sha256.h"

namespace serin::cli {
namespace {

using router::RecordedRequest;

constexpr size_t kMostNamed = 10;  // IDs in a message

/// One of the recording, with its meaning. The target has views of the head.
struct Restored {
  const RecordedRequest* request = nullptr;
  net::Head head;
  router::Target target;
  bool known = false;  ///< whether the target means anything
  std::string id;
};

std::string id_of(const Restored& restored, protocol::JsonPointerReader& json) {
  constexpr size_t kDigits = 16;
  const std::string digest = registry::digest_of(router::encode(*restored.request)).substr(sizeof("sha256:") - 1, kDigits);
  uint64_t drawn = 0;
  std::from_chars(digest.data(), digest.data() + digest.size(), drawn, 16);
  return router::request_id_of(restored.head, restored.target, restored.request->body, json, drawn);
}

std::string time_of(const RecordedRequest& request) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::time_point_cast<std::chrono::seconds>(request.at)));
}

/// Whether a place of a JSON body (RFC 6901) is a part of the tensors, in any of the protocols.
bool is_of_inputs(std::string_view place, const Restored& restored, const protocol::Signature& signature) {
  constexpr std::array<std::string_view, 6> kOfTensors{"inputs", "instances", "examples", "context", "tensor", "value"};
  std::vector<std::string_view> parts;
  for (size_t from = 1, to = 0; from <= place.size(); from = to + 1) {
    to = std::min(place.find('/', from), place.size());
    parts.push_back(place.substr(from, to - from));
  }
  const std::string_view first = parts.empty() ? std::string_view() : parts.front();
  if (restored.target.rest == "/generate")
    return std::ranges::any_of(signature.inputs, [&](const protocol::TensorSpec& input) {
      return input.name == first || (first == "parameters" && parts.size() > 1 && input.name == parts[1]);
    });
  const bool parameter = first == "inputs" && parts.size() > 2 && parts[2] == "parameters";
  return !parameter && std::ranges::find(kOfTensors, first) != kOfTensors.end();
}

/// The place of an input whose value is not in the recording; empty: there is none.
std::string redacted_input(const std::vector<std::string>& redact, const Restored& restored, const protocol::Signature& signature) {
  std::optional<boost::json::value> body;
  for (const std::string& place : redact) {
    if (!is_of_inputs(place, restored, signature)) continue;
    if (!body) {
      boost::system::error_code error;
      body = boost::json::parse(restored.request->body, error, {}, {.max_depth = 128});
      if (error) return place;  // such as NaN, which the codecs take: to be on the safe side
    }
    if (json_at::find(*body, place)) return place;
  }
  return {};
}

Result<std::vector<engine::Value>> read_values(const Restored& restored, const std::vector<std::string>& redact,
                                               const protocol::Signature& signature) {
  const RecordedRequest& request = *restored.request;
  if (!restored.known) return Error{Code::kUnsupported, fmt::format("{} {} names no service", request.method, request.target)};
  if (const std::string place = redacted_input(redact, restored, signature); !place.empty())
    return Error{Code::kFailedPrecondition,
                 fmt::format("'{}' is a part of its inputs, and `redact` of router.yaml removed it before the request was kept", place)};
  SERIN_TRY(const protocol::InferRequest decoded, decode_recorded(request, restored.head, restored.target, signature));
  std::vector<engine::Value> values;
  values.reserve(decoded.inputs.size());
  for (const TensorView& input : decoded.inputs) values.push_back(value_of(input));
  return values;
}

Error not_found(const RecordingFlags& flags, const std::vector<Restored>& newest_first) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < std::min(kMostNamed, newest_first.size()); ++i) names.push_back(newest_first[i].id);
  return {Code::kNotFound, fmt::format("{}: has no request '{}' among {}; the newest are {}", flags.file, flags.request,
                                       newest_first.size(), fmt::join(names, ", "))};
}

Result<router::RecordingFile> open_recording(const RecordingFlags& flags, const std::string& service) {
  if (flags.key.empty()) return invalid("--recording needs --key: the file that `recording.key` of router.yaml names");
  SERIN_TRY(const router::SealingKey key, router::read_sealing_key(flags.key));
  auto file = router::read_recording_file(flags.file, key, service);
  if (!file && file.error().code == Code::kCorrupt)
    return Error{Code::kCorrupt,
                 fmt::format("{} (read with {} for service '{}'; --service names another)", file.error().message, flags.key, service)};
  if (file && file->requests.empty()) return Error{Code::kNotFound, flags.file + ": has no requests"};
  return file;
}

}  // namespace

void add_recording_flags(CLI::App& command, RecordingFlags& flags) {
  auto* file = command.add_option("--recording", flags.file, "file of requests that a router recorded (`recording.file` of router.yaml)");
  command.add_option("--key", flags.key, "file with the key of the recording (`recording.key` of router.yaml)")->needs(file);
  command.add_option("--service", flags.service, "service of the recording; default: the name of the file without its ending")->needs(file);
  auto* request = command.add_option("--request", flags.request, "only the recorded request with this ID")->needs(file);
  command.add_option("--latest", flags.latest, "only so many recorded requests, the newest")
      ->needs(file)
      ->excludes(request)
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
}

Result<RecordedInputs> read_recorded_inputs(const RecordingFlags& flags, const protocol::Signature& signature) {
  const std::string service = flags.service.empty() ? std::filesystem::path(flags.file).stem().string() : flags.service;
  SERIN_TRY(const router::RecordingFile file, open_recording(flags, service));
  protocol::JsonPointerReader json;
  std::vector<Restored> all(file.requests.size());
  for (size_t i = 0; i < all.size(); ++i) {
    Restored& restored = all[i];
    restored.request = file.requests[all.size() - 1 - i].get();
    restored.known = router::restore(*restored.request, service, restored.head, restored.target);
    restored.id = id_of(restored, json);
  }
  RecordedInputs found;
  std::optional<Error> first;  // of those that do not fit
  for (const Restored& restored : all) {
    const size_t taken = found.requests.size() + found.unfit.size();
    if (flags.request.empty() ? taken == static_cast<size_t>(flags.latest) : restored.id != flags.request) continue;
    auto values = read_values(restored, file.redact, signature);
    if (values) {
      found.requests.push_back({restored.id, time_of(*restored.request), *std::move(values)});
      continue;
    }
    if (!first) first = values.error().in("request " + restored.id);
    found.unfit.push_back({restored.id, values.error().message});
  }
  if (found.requests.empty() && first && found.unfit.size() > 1)
    return first->in(fmt::format("none of {} recorded requests fits", found.unfit.size()));
  if (found.requests.empty()) return first ? *first : not_found(flags, all);
  return found;
}

}  // namespace serin::cli
