#include "runtime/registry/s3_bucket.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "runtime/base/number.h"
#include "runtime/net/message/message_writer.h"
#include "runtime/net/target.h"
#include "runtime/registry/oci_layout.h"
#include "runtime/registry/s3_errors.h"
#include "runtime/registry/sigv4.h"
#include "runtime/registry/versions.h"
#include "runtime/registry/xml_texts.h"

namespace serin::registry {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr int kMostPages = 100;  // of a list, each with up to 1000 names

bool is_bucket(std::string_view name) {
  constexpr size_t kLeast = 3, kMost = 63;
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
  };
  return name.size() >= kLeast && name.size() <= kMost && std::ranges::all_of(name, allowed) && name.find("..") == std::string_view::npos &&
         name.front() != '.' && name.front() != '-';
}

/// A part of a host's name, so that it cannot name another host.
bool is_region(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

/// Whether it can be the first part of a host's name: certificates of AWS have one part for it.
bool fits_host(std::string_view bucket) {
  return std::ranges::all_of(bucket, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

std::string escaped_path(std::string_view path) {
  std::string text;
  net::append_escaped(path, "/", text);
  return text;
}

std::string time_for_aws() {
  return fmt::format("{:%Y%m%dT%H%M%SZ}",
                     fmt::gmtime(std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now())));
}

}  // namespace

bool S3Bucket::is_address(std::string_view text) { return text.starts_with(kScheme); }

Result<std::shared_ptr<const S3Bucket>> S3Bucket::open(std::string_view address, std::shared_ptr<const net::TlsContext> tls) {
  std::string_view rest = address;
  rest.remove_prefix(std::min(rest.size(), kScheme.size()));
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const std::string_view name = rest.substr(0, rest.find('/'));
  const std::string_view prefix = rest.substr(std::min(rest.size(), name.size() + 1));
  if (!is_address(address) || !is_bucket(name) || (!prefix.empty() && !is_safe_path(prefix)))
    return invalid(
        fmt::format("'{}' is not s3://BUCKET[/PREFIX], with a name of 3 to 63 letters, digits, '.', '-' and '_', and no part of the "
                    "prefix that is empty, '.' or '..'",
                    address));
  const std::string region = aws_region();
  if (!is_region(region)) return invalid(fmt::format("the region of AWS_REGION, '{}', is not one like eu-west-1", region));
  std::shared_ptr<S3Bucket> bucket(new S3Bucket(std::string(name), prefix.empty() ? "" : std::string(prefix) + "/", region));
  SERIN_CHECK(bucket->place_at(aws_endpoint()));
  if (WebIdentity::is_configured()) bucket->identity_ = std::make_unique<WebIdentity>(region, std::move(tls));
  SERIN_CHECK(bucket->credentials());
  return std::shared_ptr<const S3Bucket>(std::move(bucket));
}

Result<AwsCredentials> S3Bucket::credentials() const { return identity_ ? identity_->credentials() : aws_credentials(); }

Status S3Bucket::place_at(const std::string& endpoint) {
  std::string path;
  if (endpoint.empty()) {
    const std::string host = fmt::format("s3.{}.amazonaws.com{}", region_, region_.starts_with("cn-") ? ".cn" : "");
    const bool in_host = fits_host(name_);
    bucket_url_.origin = {.host = in_host ? fmt::format("{}.{}", name_, host) : host, .port = 443, .secure = true};
    path = in_host ? "" : "/" + name_;
  } else {
    const auto url = net::parse_url(endpoint);
    // Its text is not repeated: it may have a password.
    if (!url || url->path.find('?') != std::string::npos)
      return invalid("AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL is not http(s)://HOST[:PORT][/PATH], without user, '?' and '#'");
    bucket_url_.origin = url->origin;
    path = url->path;
    while (path.ends_with('/')) path.pop_back();
    path += "/" + name_;
  }
  bucket_url_.path = path;
  folder_ = bucket_url_;
  if (!prefix_.empty()) folder_.path += "/" + escaped_path(std::string_view(prefix_).substr(0, prefix_.size() - 1));
  return {};
}

Status S3Bucket::authorise(const net::Origin& origin, net::Outgoing& request) const {
  SERIN_TRY(const AwsCredentials credentials, this->credentials());
  if (!credentials.key) return {};
  const std::string payload = digest_of(request.body ? *request.body : std::string()).substr(sizeof("sha256:") - 1), time = time_for_aws();
  request.headers.set("x-amz-content-sha256", payload);
  request.headers.set("x-amz-date", time);
  if (!credentials.key->token.empty()) request.headers.set("x-amz-security-token", credentials.key->token);
  const std::string value = authorization(request, net::host_field(origin), payload, *credentials.key, {time, region_});
  request.headers.set("Authorization", value);
  return {};
}

std::string S3Bucket::named(const net::Url& url) const {
  std::string path, query;
  const std::string root = bucket_url_.path + "/";
  if (!url.path.starts_with(root) || net::decode_target("/" + url.path.substr(root.size()), path, query) || path == "/")
    return fmt::format("bucket '{}'", name_);
  return fmt::format("bucket '{}', key '{}'", name_, path.substr(1));
}

Error S3Bucket::refusal(const net::Url& url, const net::Response& answer, const std::string& said) const {
  const auto credentials = this->credentials();
  return s3_error(answer, fmt::format("{}: {}", said, named(url)),
                  {.key = credentials ? credentials->source : credentials.error().message,
                   .is_signed = credentials && credentials->key,
                   .region = region_,
                   .time = time_for_aws()});
}

Status S3Bucket::list(const HttpFiles& files, std::string_view query, const UsePage& use) const {
  const std::string first = fmt::format("?list-type=2{}&prefix={}", query, net::escaped(prefix_));
  std::string page = first;
  for (int pages = 0; pages < kMostPages; ++pages) {
    SERIN_TRY(const auto read, files.read(page, kMostText));
    if (read->text.find("<ListBucketResult") == std::string::npos)
      return Error{Code::kCorrupt, fmt::format("{}: no list of a bucket; is that the endpoint of an S3 server?", files.url(page))};
    SERIN_CHECK(use(read->text));
    const std::string next = xml_text(read->text, "NextContinuationToken");
    if (xml_text(read->text, "IsTruncated") != "true" || next.empty()) return {};
    page = fmt::format("{}&continuation-token={}", first, net::escaped(next));
  }
  return Error{Code::kTooLarge, fmt::format("s3://{}/{}: has more than {} pages of names; name a model", name_, prefix_, kMostPages)};
}

Result<std::vector<std::string>> S3Bucket::folders(const std::shared_ptr<const S3Bucket>& bucket,
                                                   const std::shared_ptr<const net::TlsContext>& tls) {
  const std::string& prefix = bucket->prefix_;
  std::vector<std::string> names;
  SERIN_CHECK(bucket->list(HttpFiles(bucket->bucket_url_, tls, bucket), "&delimiter=%2F", [&](const std::string& xml) -> Status {
    for (const std::string& folder : xml_texts(xml, "Prefix"))
      if (folder.size() > prefix.size() && folder.starts_with(prefix) && folder.ends_with('/'))
        names.push_back(folder.substr(prefix.size(), folder.size() - prefix.size() - 1));
    return {};
  }));
  return names;
}

Result<std::vector<ListedFile>> S3Bucket::files(const std::shared_ptr<const S3Bucket>& bucket,
                                                const std::shared_ptr<const net::TlsContext>& tls) {
  const std::string& prefix = bucket->prefix_;
  std::vector<ListedFile> found;
  const HttpFiles server(bucket->bucket_url_, tls, bucket);
  SERIN_CHECK(bucket->list(server, "", [&](const std::string& xml) -> Status {
    const std::vector<std::string> keys = xml_texts(xml, "Key"), sizes = xml_texts(xml, "Size");
    if (keys.size() != sizes.size()) return Error{Code::kCorrupt, server.url("") + ": lists names without sizes"};
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i].ends_with('/')) continue;  // a folder, as some tools mark one
      const auto bytes = parse_number<uint64_t>(sizes[i]);
      const std::string path = keys[i].starts_with(prefix) ? keys[i].substr(prefix.size()) : "";
      if (!bytes || !is_safe_path(path))
        return Error{Code::kCorrupt, fmt::format("{}: lists '{}', which is no file below '{}'", server.url(""), quotable(keys[i]), prefix)};
      found.push_back({path, *bytes});
    }
    return {};
  }));
  return found;
}

}  // namespace serin::registry
