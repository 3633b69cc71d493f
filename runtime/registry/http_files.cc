#include "runtime/registry/http_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "runtime/base/utf8.h"
#include "runtime/net/message/message_writer.h"
#include "runtime/registry/oci_layout.h"
#include "runtime/registry/part_file.h"

namespace serin::registry {
namespace {

using namespace std::chrono_literals;

constexpr int kRedirects = 5, kAttempts = 3;
constexpr auto kConnectTime = 10s, kSilence = 30s;
constexpr auto kTextTime = 60s;
constexpr auto kDownloadTime = std::chrono::hours(24);  // silence ends it much earlier
constexpr auto kPause = 250ms;
constexpr size_t kErrorPage = 1 << 20;   // bytes of an answer that is no file
constexpr size_t kKeptPage = 64 * 1024;  // bytes of it that are looked at
constexpr size_t kMostRange = 64 << 20;  // bytes
constexpr size_t kSlowest = 64 * 1024;   // bytes a second, of what is sent

net::ClientOptions client_options(std::shared_ptr<const net::TlsContext> tls, size_t bytes) {
  return {.connect_timeout = kConnectTime, .silence_timeout = kSilence, .response_bytes = bytes, .tls = std::move(tls)};
}

/// Where an answer with that Location points (RFC 3986, 5.2, without "..").
std::optional<net::Url> follow(const net::Url& from, std::string location) {
  location.erase(std::min(location.find('#'), location.size()));
  if (location.empty()) return std::nullopt;
  if (location.starts_with("//")) location.insert(0, from.origin.secure ? "https:" : "http:");
  if (location.find("://") < location.find('/')) return net::parse_url(location);
  const std::string path = from.path.substr(0, from.path.find('?'));
  net::Url to{.origin = from.origin, .path = "/"};
  return net::parse_url(text_of(to) + (location.front() == '/' ? location.substr(1) : path.substr(1, path.rfind('/')) + location));
}

bool is_redirect(int status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }

/// Longer for a body, which may come over a slow line.
std::chrono::nanoseconds time_for(const net::Outgoing& request) {
  if (request.headers.has("Range")) return kDownloadTime;
  return kTextTime + std::chrono::seconds(request.body ? request.body->size() / kSlowest : 0);
}

/// Whether the same request may succeed in a moment.
bool may_pass(Code code) {
  return code == Code::kIo || code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kOverloaded;
}

}  // namespace

struct HttpFiles::Answer {
  net::Response response;  // its body: the beginning of what is no file
  net::Url url;            // after redirects
};

HttpFiles::HttpFiles(net::Url base, std::shared_ptr<const net::TlsContext> tls, std::shared_ptr<const Access> access)
    : base_(std::move(base)), tls_(std::move(tls)), access_(std::move(access)), small_(client_options(tls_, kMostText + kErrorPage)) {}

std::string text_of(const net::Url& url) {
  return fmt::format("{}://{}{}", url.origin.secure ? "https" : "http", net::host_field(url.origin), url.path);
}

Error status_error(int status, const std::string& said) {
  if (status == 404 || status == 410) return {Code::kNotFound, said};
  if (status == 401 || status == 403)
    return {Code::kPermissionDenied, said + ": the server does not let everybody read this file; allow it, or check the address"};
  if (status == 408 || status == 429 || status >= 500) return {Code::kUnavailable, said + ": try again later"};
  return {Code::kUnsupported, said + ": no answer of a server of files"};
}

std::string quotable(const std::string& text) {
  constexpr size_t kMost = 200;
  std::string made(utf8_prefix(text, kMost));
  std::ranges::replace_if(made, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  return is_utf8(made) ? made : "(not UTF-8)";
}

std::string HttpFiles::url(const std::string& path) const { return fmt::format("{}/{}", text_of(base_), path); }

Error HttpFiles::refusal(const Answer& answer) const {
  const int status = answer.response.status;
  const std::string said = fmt::format("{}: {} {}", text_of(answer.url), status, net::reason_phrase(status));
  return access_ && answer.url.origin == base_.origin ? access_->refusal(answer.url, answer.response, said) : status_error(status, said);
}

Result<HttpFiles::Answer> HttpFiles::ask(net::Session& session, const std::string& path, const net::Outgoing& request,
                                         const net::Session::Use& use) const {
  net::Url url{.origin = base_.origin, .path = fmt::format("{}/{}", base_.path, path)};
  bool renewed = false;
  for (int redirects = 0;; ++redirects) {
    net::Outgoing asked = request;
    asked.target = url.path;
    // A signature or a token is for this server, not for those that it names.
    if (access_ && url.origin == base_.origin) SERIN_CHECK(access_->authorise(url.origin, asked));
    std::string page;
    auto response = session.receive(url.origin, asked, time_for(request), [&](int status, std::string_view bytes) {
      if (status < 300)
        use(status, bytes);
      else
        page.append(bytes.substr(0, kKeptPage - page.size()));
    });
    if (!response) return response.error().in(text_of(url));
    response->body = std::move(page);
    if (response->status == 401 && access_ && url.origin == base_.origin && !std::exchange(renewed, true)) {
      SERIN_TRY(const bool again, access_->renew(*response));
      if (again) continue;
    }
    const std::string_view location = response->headers.get("Location");
    const bool follows = (request.method == "GET" || request.method == "HEAD") && !(access_ && location.empty());
    if (!is_redirect(response->status) || !follows) return Answer{*std::move(response), url};
    const auto next = follow(url, std::string(location));
    const std::string said = fmt::format("{}: {}", text_of(url), response->status);
    if (!next) return Error{Code::kCorrupt, fmt::format("{}: redirects to no URL ('{}')", said, location)};
    if (url.origin.secure && !next->origin.secure)
      return Error{Code::kPermissionDenied, fmt::format("{}: redirects from https to {}, which is not followed", said, text_of(*next))};
    if (redirects == kRedirects)
      return Error{Code::kFailedPrecondition,
                   fmt::format("{}: redirects more than {} times, now to {}; name the last address", said, kRedirects, text_of(*next))};
    url = *next;
  }
}

Result<net::Response> HttpFiles::send(const std::string& path, const net::Outgoing& request, size_t limit) const {
  for (int failures = 1;; ++failures) {
    std::string text;
    auto answer = ask(small_, path, request, [&](int, std::string_view bytes) {
      if (text.size() <= limit) text.append(bytes);
    });
    if (answer && text.size() > limit)
      return Error{Code::kTooLarge, fmt::format("{}: has more than {} bytes, the limit of such a file", text_of(answer->url), limit)};
    const int status = answer ? answer->response.status : 0;
    if (status == 304 || (status >= 200 && status < 300)) {
      answer->response.body = std::move(text);
      return std::move(answer->response);
    }
    Error error = answer ? refusal(*answer) : answer.error();
    if (failures == kAttempts || !may_pass(error.code)) return error;
    std::this_thread::sleep_for(kPause * failures);
  }
}

Result<std::optional<TextFile>> HttpFiles::read(const std::string& path, size_t limit, const std::string& tag) const {
  net::Outgoing request;
  request.headers.set("Cache-Control", "no-cache");
  if (!tag.empty()) request.headers.set("If-None-Match", tag);
  SERIN_TRY(net::Response answer, send(path, request, limit));
  if (answer.status == 304 && !tag.empty()) return std::optional<TextFile>();
  if (answer.status != 200) return status_error(answer.status, fmt::format("{}: {}", url(path), answer.status));
  return TextFile{std::move(answer.body), std::string(answer.headers.get("ETag"))};
}

Status HttpFiles::download(const std::string& path, const Contents& wanted, const std::string& to) const {
  SERIN_TRY(PartFile part, PartFile::open(to + ".part", wanted.bytes));
  const bool continued = part.bytes() > 0;
  SERIN_CHECK(fill(path, wanted.bytes, part));
  std::string digest = part.digest();
  if (digest != wanted.digest && continued) {  // the part may be that of a machine that lost power
    SERIN_CHECK(part.restart());
    SERIN_CHECK(fill(path, wanted.bytes, part));
    digest = part.digest();
  }
  if (digest == wanted.digest) return part.finish(to);
  part.remove();
  return Error{Code::kCorrupt, fmt::format("{}: has other contents than its digest {} says (it has {})", url(path), wanted.digest, digest)};
}

Result<std::string> HttpFiles::download_new(const std::string& path, uint64_t bytes, const std::string& to) const {
  SERIN_TRY(PartFile part, PartFile::open(to + ".part", bytes));
  if (part.bytes() > 0) SERIN_CHECK(part.restart());
  SERIN_CHECK(fill(path, bytes, part));
  std::string digest = part.digest();
  SERIN_CHECK(part.finish(to));
  return digest;
}

Status HttpFiles::fill(const std::string& path, uint64_t bytes, PartFile& part) const {
  uint64_t most = part.bytes();
  for (int failures = 0; part.bytes() < bytes;) {
    Status asked = ask_for_rest(path, bytes, part);
    if (part.bytes() == bytes) break;
    if (asked) asked = Error{Code::kIo, fmt::format("{}: ended after {} of {} bytes", url(path), part.bytes(), bytes)};
    if (!may_pass(asked.error().code)) return asked.error();
    failures = part.bytes() > most ? 1 : failures + 1;
    most = std::max(most, part.bytes());
    if (failures == kAttempts)
      return Error{asked.error().code, fmt::format("{}; {} of {} bytes are here", asked.error().message, part.bytes(), bytes)};
    std::this_thread::sleep_for(kPause * failures);
  }
  return {};
}

/// A connection of its own, so that an answer can be left in the middle.
Status HttpFiles::ask_for_rest(const std::string& path, uint64_t bytes, PartFile& part) const {
  net::Session session(client_options(tls_, bytes + kErrorPage));
  net::Outgoing request;
  request.headers.set("Range", fmt::format("bytes={}-", part.bytes()));
  bool begun = false, too_long = false;
  Status written;
  const auto answer = ask(session, path, request, [&](int status, std::string_view more) {
    if ((status != 200 && status != 206) || too_long || !written) return;
    if (!std::exchange(begun, true) && status == 200) written = part.restart();  // a server without ranges
    too_long = more.size() > bytes - part.bytes();
    if (!too_long && written) written = part.append(more);
    if (too_long || !written) session.stop();
  });
  if (!written) return written.error();
  if (too_long || (!answer && answer.error().code == Code::kTooLarge)) {
    part.remove();
    return Error{Code::kCorrupt, fmt::format("{}: is longer than the {} bytes of its entry in the registry", url(path), bytes)};
  }
  if (!answer) return answer.error();
  const int status = answer->response.status;
  return status == 200 || status == 206 ? Status() : Status(refusal(*answer));
}

Status HttpFiles::read_range(const std::string& path, Span span, const Use& use) const {
  const uint64_t bytes = span.to - span.from;
  for (int failures = 0; span.from < span.to;) {
    const uint64_t before = span.from;
    const Status asked = ask_for_range(path, span, use);
    if (asked && span.from > before) continue;
    Error error =
        asked ? Error{Code::kIo, fmt::format("{}: {} bytes of {} did not come", url(path), span.to - span.from, bytes)} : asked.error();
    if (!may_pass(error.code)) return error;
    failures = span.from > before ? 1 : failures + 1;
    if (failures == kAttempts) return error;
    std::this_thread::sleep_for(kPause * failures);
  }
  return {};
}

/// Over a kept connection, for there may be thousands of ranges. `span` loses what has come.
Status HttpFiles::ask_for_range(const std::string& path, Span& span, const Use& use) const {
  if (!ranges_) ranges_ = std::make_unique<net::Session>(client_options(tls_, kMostRange + kErrorPage));
  net::Outgoing request;
  request.headers.set("Range", fmt::format("bytes={}-{}", span.from, span.to - 1));
  const bool from_beginning = span.from == 0;
  Status used;
  bool too_long = false;
  const auto answer = ask(*ranges_, path, request, [&](int status, std::string_view more) {
    const bool is_range = status == 206 || (status == 200 && from_beginning);
    if (too_long || !used || !is_range || more.size() > span.to - span.from) {
      too_long = true;
    } else {
      used = use(more);
      span.from += more.size();
    }
    if (too_long || !used) ranges_->stop();
  });
  if (too_long || !used) ranges_.reset();
  if (!used) return used.error();
  if (too_long || (answer && answer->response.status == 200 && !from_beginning))
    return Error{Code::kUnsupported, fmt::format("{}: the server does not answer the range that it is asked for", url(path))};
  if (!answer) return answer.error();
  return answer->response.status < 300 ? Status() : Status(refusal(*answer));
}

}  // namespace serin::registry
