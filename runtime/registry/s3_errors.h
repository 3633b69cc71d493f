// s3_errors.h: the meaning of an answer of S3 that is no success. Source: "Error responses" of the Amazon S3 API Reference.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/net/http.h"

namespace serin::registry {

/// How the request was made.
struct S3Request {
  std::string key;  ///< where the access key is from, or why there is none
  bool is_signed = false;
  std::string region, time;
};

/// `said`: the URL, the status, the bucket and the key.
Error s3_error(const net::Response& answer, const std::string& said, const S3Request& request);

}  // namespace serin::registry
