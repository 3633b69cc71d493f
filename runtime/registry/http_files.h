// http_files.h: files below a URL, for threads that may wait: small ones as texts, large ones into a file that can be continued.
//
//   HttpFiles files(url, tls);
//   SERIN_TRY(const auto read, files.read("digits/index.json", kMostText, tag));
//   SERIN_CHECK(files.download("digits/blobs/sha256/91ab...", {"sha256:91ab...", 4711}, "cache/91ab..."));
//
// Redirects are followed, five at most and never from https to http. A failure that may pass is tried again, such as 503 or an answer that is
// cut off. Three in a row without another byte end a call. Errors name the URL, the status and what to do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/net/http.h"
#include "runtime/net/session.h"
#include "runtime/net/tls.h"

namespace serin::registry {

class PartFile;

/// A server that is more than one of plain files: what its requests have in addition, and what its refusals say.
class Access {
 public:
  virtual ~Access() = default;
  /// Adds a signature, for example. Called for each attempt, and only for requests to the server of the base URL.
  virtual Status authorise(const net::Origin& origin, net::Outgoing& request) const = 0;
  /// Whether the request may be repeated after a 401, since authorise() now has what the answer asks for. Errors: why it cannot be had.
  virtual Result<bool> renew(const net::Response& /*answer*/) const { return false; }
  /// The meaning of an answer that is no file; `said`: its URL and status. `answer.body` has the beginning of its body.
  virtual Error refusal(const net::Url& url, const net::Response& answer, const std::string& said) const = 0;
};

struct TextFile {
  std::string text;
  std::string tag;  ///< its ETag, or empty: a server without one is never asked whether the file has changed
};

struct Contents {
  std::string digest;
  uint64_t bytes = 0;
};

/// A file as a server lists it.
struct ListedFile {
  std::string path;  ///< below the folder that was listed
  uint64_t bytes = 0;
};

/// Bytes of a file: [from, to).
struct Span {
  uint64_t from, to;
};

/// For one thread at a time.
class HttpFiles {
 public:
  /// `access`: null: plain files.
  HttpFiles(net::Url base, std::shared_ptr<const net::TlsContext> tls, std::shared_ptr<const Access> access = nullptr);

  /// Nothing: it is still the one with that tag. Errors: kNotFound (404, 410), kPermissionDenied (401, 403), kTooLarge (over `limit` bytes),
  /// kUnavailable, kDeadlineExceeded, kIo, kCorrupt; those of Access.
  Result<std::optional<TextFile>> read(const std::string& path, size_t limit, const std::string& tag = {}) const;
  /// The bytes come into `to`.part, which a later call continues, and are compared with the digest before the file gets its name. One
  /// process at a time for each `to`. Errors: as read(), and kCorrupt: other bytes, or more of them; the part is then removed.
  Status download(const std::string& path, const Contents& wanted, const std::string& to) const;
  /// The same of a server that tells no digest: the file must have just that size. A part of another call is not continued. Returns the digest.
  Result<std::string> download_new(const std::string& path, uint64_t bytes, const std::string& to) const;
  /// Some bytes of it, as they come; an interruption is continued. Errors: as read(), and those of `use`; kUnsupported: the server answers no ranges.
  using Use = std::function<Status(std::string_view bytes)>;
  Status read_range(const std::string& path, Span span, const Use& use) const;
  /// Any other request; its target is replaced. Redirects are followed for GET and HEAD. Returns an answer of 2xx or 304, with at most `limit`
  /// bytes. Errors: as read().
  Result<net::Response> send(const std::string& path, const net::Outgoing& request, size_t limit) const;

  std::string url(const std::string& path) const;

 private:
  struct Answer;
  Result<Answer> ask(net::Session& session, const std::string& path, const net::Outgoing& request, const net::Session::Use& use) const;
  Error refusal(const Answer& answer) const;
  Status fill(const std::string& path, uint64_t bytes, PartFile& part) const;
  Status ask_for_rest(const std::string& path, uint64_t bytes, PartFile& part) const;
  Status ask_for_range(const std::string& path, Span& span, const Use& use) const;

  const net::Url base_;
  const std::shared_ptr<const net::TlsContext> tls_;
  const std::shared_ptr<const Access> access_;
  mutable net::Session small_;
  mutable std::unique_ptr<net::Session> ranges_;  // null: there is no connection
};

/// "https://HOST/PATH", without the port that the scheme implies.
std::string text_of(const net::Url& url);
/// A text of a server as a message may repeat it: printable, and at most 200 bytes.
std::string quotable(const std::string& text);
/// The meaning of a status of a server of plain files. `said`: the URL and the status.
Error status_error(int status, const std::string& said);

}  // namespace serin::registry
