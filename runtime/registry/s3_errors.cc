#include "runtime/registry/s3_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/registry/http_files.h"
#include "runtime/registry/xml_texts.h"

namespace serin::registry {
namespace {

struct Meaning {
  std::string_view name;
  Code code;
  std::string_view advice;  ///< {key}, {time} and {server_time} are replaced
};

constexpr std::array kMeanings{
    Meaning{"NoSuchKey", Code::kNotFound, "there is no such object"},
    Meaning{"NoSuchBucket", Code::kFailedPrecondition, "there is no such bucket; check its name, AWS_ENDPOINT_URL_S3 and AWS_REGION"},
    Meaning{"AccessDenied", Code::kPermissionDenied,
            "the access key of {key} may not do this. Reading needs s3:GetObject, a list and missing keys need s3:ListBucket, `push` needs "
            "s3:PutObject"},
    Meaning{"InvalidAccessKeyId", Code::kPermissionDenied, "the server does not know the access key of {key}"},
    Meaning{"SignatureDoesNotMatch", Code::kPermissionDenied,
            "the secret of {key} does not belong to its access key, or a proxy has changed the request"},
    Meaning{"ExpiredToken", Code::kPermissionDenied, "the temporary key of {key} has expired; get a new one"},
    Meaning{"InvalidToken", Code::kPermissionDenied, "the session token of {key} does not belong to its access key"},
    Meaning{"RequestTimeTooSkewed", Code::kFailedPrecondition,
            "the clocks differ too much: this machine's says {time}, the server's {server_time}; set the one that is wrong"},
    Meaning{"PreconditionFailed", Code::kConflict, "another writer has changed it meanwhile"},
    Meaning{"ConditionalRequestConflict", Code::kConflict, "another writer has changed it meanwhile"},
    Meaning{"NotImplemented", Code::kUnsupported, "the server lacks a part of S3 that this needs"},
    Meaning{"SlowDown", Code::kUnavailable, "try again later"},
    Meaning{"InternalError", Code::kUnavailable, "try again later"},
    Meaning{"RequestTimeout", Code::kUnavailable, "try again later"},
    Meaning{"ServiceUnavailable", Code::kUnavailable, "try again later"},
};

/// The bucket's own region, if the answer names it.
std::string region_of(const net::Response& answer) {
  const std::string header(answer.headers.get("x-amz-bucket-region"));
  return quotable(header.empty() ? xml_text(answer.body, "Region") : header);
}

Error without_code(const net::Response& answer, const std::string& said, const S3Request& request) {
  if (answer.status == 412) return {Code::kConflict, said + ": another writer has changed it meanwhile"};
  if (answer.status == 401 || answer.status == 403)
    return {Code::kPermissionDenied, fmt::format("{}: {}", said,
                                                 request.is_signed ? fmt::format("the access key of {} may not do this", request.key)
                                                                   : "requests are not signed, because " + request.key)};
  Error error = status_error(answer.status, said);
  if (!answer.body.empty()) error.message += "; the answer is not one of S3, so check AWS_ENDPOINT_URL_S3";
  return error;
}

}  // namespace

Error s3_error(const net::Response& answer, const std::string& said, const S3Request& request) {
  const std::string name = quotable(xml_text(answer.body, "Code")), region = region_of(answer);
  const std::string now = name.empty() ? said : fmt::format("{}: {}", said, name);
  const bool elsewhere = answer.status == 301 || answer.status == 307 || name == "AuthorizationHeaderMalformed";
  if (!region.empty() && region != request.region && (elsewhere || answer.status == 400))
    return {Code::kFailedPrecondition,
            fmt::format("{}: the bucket is in region '{}' and not in '{}'; set AWS_REGION={}", now, region, request.region, region)};
  if (elsewhere)
    return {Code::kFailedPrecondition, fmt::format("{}: check AWS_REGION (now '{}') and AWS_ENDPOINT_URL_S3", now, request.region)};
  if (!request.is_signed && !name.empty() && (answer.status == 401 || answer.status == 403))
    return {Code::kPermissionDenied, fmt::format("{}: requests are not signed, because {}", now, request.key)};
  const auto known = std::ranges::find(kMeanings, name, &Meaning::name);
  if (known != kMeanings.end())
    return {known->code, fmt::format("{}: {}", now,
                                     fmt::format(fmt::runtime(known->advice), fmt::arg("key", request.key), fmt::arg("time", request.time),
                                                 fmt::arg("server_time", quotable(std::string(answer.headers.get("Date"))))))};
  if (name.empty()) return without_code(answer, said, request);
  const Code code = status_error(answer.status, "").code;
  return {code, fmt::format("{} ({})", now, quotable(xml_text(answer.body, "Message")))};
}

}  // namespace serin::registry
