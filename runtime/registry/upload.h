// upload.h: files into a bucket of S3: small texts on a condition, large files in parts.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/registry/http_files.h"

namespace serin::registry {

/// Replaces a text, on condition that it still has that ETag; empty: that there is none. kConflict: the condition does not hold.
Status put_text(const HttpFiles& files, const std::string& path, const std::string& text, const std::string& tag);

/// Uploads a file whose name in the bucket depends on its digest, unless it is there. Over 32 MiB it goes in parts, so that a failure costs one of
/// them. kCorrupt: the file has another digest, and the bucket gets nothing.
Status put_blob(const HttpFiles& files, const std::string& path, const std::string& file, const Contents& contents);

}  // namespace serin::registry
