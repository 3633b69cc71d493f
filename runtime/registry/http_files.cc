#include "runtime/registry/http_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

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
constexpr size_t kErrorPage = 1 << 20;  // bytes of an answer that is no file

net::ClientOptions client_options(std::shared_ptr<const net::TlsContext> tls, size_t bytes) {
  return {.connect_timeout = kConnectTime, .silence_timeout = kSilence, .response_bytes = bytes, .tls = std::move(tls)};
}

std::string text_of(const net::Url& url) {
  const bool is_v6 = url.origin.host.find(':') != std::string::npos, standard = url.origin.port == (url.origin.secure ? 443 : 80);
  return fmt::format("{}://{}{}{}{}{}", url.origin.secure ? "https" : "http", is_v6 ? "[" : "", url.origin.host, is_v6 ? "]" : "",
                     standard ? "" : fmt::format(":{}", url.origin.port), url.path);
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

Status status_error(int status, const std::string& url) {
  const std::string said = fmt::format("{}: {} {}", url, status, net::reason_phrase(status));
  if (status == 404 || status == 410) return Error{Code::kNotFound, said};
  if (status == 401 || status == 403)
    return Error{Code::kPermissionDenied, said + ": the server does not let everybody read this file; allow it, or check the address"};
  if (status == 408 || status == 429 || status >= 500) return Error{Code::kUnavailable, said + ": try again later"};
  return Error{Code::kUnsupported, said + ": no answer of a server of files"};
}

/// Whether the same request may succeed in a moment.
bool may_pass(Code code) {
  return code == Code::kIo || code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kOverloaded;
}

}  // namespace

struct HttpFiles::Answer {
  net::Response response;
  std::string url;  ///< after redirects
};

HttpFiles::HttpFiles(net::Url base, std::shared_ptr<const net::TlsContext> tls)
    : base_(std::move(base)), tls_(std::move(tls)), small_(client_options(tls_, kMostText + kErrorPage)) {}

std::string HttpFiles::url(const std::string& path) const { return fmt::format("{}/{}", text_of(base_), path); }

Result<HttpFiles::Answer> HttpFiles::ask(net::Session& session, const std::string& path, net::Outgoing request,
                                         const net::Session::Use& use) const {
  net::Url url{.origin = base_.origin, .path = fmt::format("{}/{}", base_.path, path)};
  const auto time = request.headers.has("Range") ? std::chrono::nanoseconds(kDownloadTime) : kTextTime;
  for (int redirects = 0;; ++redirects) {
    request.target = url.path;
    auto response = session.receive(url.origin, request, time, use);
    if (!response) return response.error().in(text_of(url));
    if (!is_redirect(response->status)) return Answer{*std::move(response), text_of(url)};
    const std::string_view location = response->headers.get("Location");
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

Result<std::optional<TextFile>> HttpFiles::read(const std::string& path, size_t limit, const std::string& tag) const {
  net::Outgoing request;
  request.headers.set("Cache-Control", "no-cache");
  if (!tag.empty()) request.headers.set("If-None-Match", tag);
  for (int failures = 1;; ++failures) {
    std::string text;
    const auto answer = ask(small_, path, request, [&](int status, std::string_view bytes) {
      if (status == 200 && text.size() <= limit) text.append(bytes);
    });
    if (answer && answer->response.status == 304 && !tag.empty()) return std::optional<TextFile>();
    if (answer && text.size() > limit)
      return Error{Code::kTooLarge, fmt::format("{}: has more than {} bytes, the limit of such a file", answer->url, limit)};
    if (answer && answer->response.status == 200) return TextFile{std::move(text), std::string(answer->response.headers.get("ETag"))};
    Error error = answer ? status_error(answer->response.status, answer->url).error() : answer.error();
    if (failures == kAttempts || !may_pass(error.code)) return error;
    std::this_thread::sleep_for(kPause * failures);
  }
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
  return status == 200 || status == 206 ? Status() : status_error(status, answer->url);
}

}  // namespace serin::registry
