// http_files.h: plain files below a URL, for threads that may wait: small ones as texts, large ones into a file that can be continued.
//
//   HttpFiles files(url, tls);
//   SERIN_TRY(const auto read, files.read("digits/index.json", kMostText, tag));
//   SERIN_CHECK(files.download("digits/blobs/sha256/91ab...", {"sha256:91ab...", 4711}, "cache/91ab..."));
//
// Redirects are followed, five at most and never from https to http. A failure that may pass is tried again, such as 503 or an answer that is
// cut off. Three in a row without another byte end a call. Errors name the URL, the status and what to do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/result.h"
#include "runtime/net/http.h"
#include "runtime/net/session.h"
#include "runtime/net/tls.h"

namespace serin::registry {

class PartFile;

struct TextFile {
  std::string text;
  std::string tag;  ///< its ETag, or empty: a server without one is never asked whether the file has changed
};

struct Contents {
  std::string digest;
  uint64_t bytes = 0;
};

/// For one thread at a time.
class HttpFiles {
 public:
  HttpFiles(net::Url base, std::shared_ptr<const net::TlsContext> tls);

  /// Nothing: it is still the one with that tag. Errors: kNotFound (404, 410), kPermissionDenied (401, 403), kTooLarge (over `limit` bytes),
  /// kUnavailable, kDeadlineExceeded, kIo, kCorrupt.
  Result<std::optional<TextFile>> read(const std::string& path, size_t limit, const std::string& tag = {}) const;
  /// The bytes come into `to`.part, which a later call continues, and are compared with the digest before the file gets its name. One
  /// process at a time for each `to`. Errors: as read(), and kCorrupt: other bytes, or more of them; the part is then removed.
  Status download(const std::string& path, const Contents& wanted, const std::string& to) const;

  std::string url(const std::string& path) const;

 private:
  struct Answer;
  Result<Answer> ask(net::Session& session, const std::string& path, net::Outgoing request, const net::Session::Use& use) const;
  Status fill(const std::string& path, uint64_t bytes, PartFile& part) const;
  Status ask_for_rest(const std::string& path, uint64_t bytes, PartFile& part) const;

  const net::Url base_;
  const std::shared_ptr<const net::TlsContext> tls_;
  mutable net::Session small_;
};

}  // namespace serin::registry
