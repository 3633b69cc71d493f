#include "runtime/registry/upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <utility>

#include "runtime/net/target.h"
#include "runtime/registry/oci_layout.h"
#include "runtime/registry/sha256.h"
#include "runtime/registry/xml_texts.h"

namespace serin::registry {
namespace {

constexpr uint64_t kPart = 32 << 20;   // bytes
constexpr uint64_t kMostParts = 9000;  // S3 takes 10,000

net::Outgoing request_with(const char* method, std::string body, const char* type) {
  net::Outgoing request{.method = method, .target = "/", .headers = {}, .body = std::make_shared<const std::string>(std::move(body))};
  request.headers.set("Content-Type", type);
  return request;
}

Error changed(const std::string& file, const Contents& contents) {
  return {Code::kCorrupt, fmt::format("{} has other contents than its digest {} says; it is not uploaded", file, contents.digest)};
}

/// An upload in parts. Unless it is completed, the server is asked to forget its parts, which would cost money.
class Parts {
 public:
  Parts(const HttpFiles& files, std::string path) : files_(files), path_(std::move(path)) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() {
    if (!id_.empty()) (void)files_.send(address(), {.method = "DELETE", .target = "/", .headers = {}, .body = nullptr}, kMostText);
  }

  Status begin() {
    SERIN_TRY(const net::Response answer, files_.send(path_ + "?uploads", request_with("POST", "", kBytes), kMostText));
    id_ = xml_text(answer.body, "UploadId");
    if (id_.empty()) return Error{Code::kCorrupt, files_.url(path_) + ": the server answers no UploadId"};
    return {};
  }
  Status add(std::string bytes) {
    ++count_;
    const std::string at = fmt::format("{}&partNumber={}", address(), count_);
    SERIN_TRY(const net::Response answer, files_.send(at, request_with("PUT", std::move(bytes), kBytes), kMostText));
    listed_ += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", count_, answer.headers.get("ETag"));
    return {};
  }
  /// The answer comes as 200 before the server knows how it ends.
  Status complete() {
    const std::string list = fmt::format("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", listed_);
    SERIN_TRY(const net::Response answer, files_.send(address(), request_with("POST", list, "application/xml"), kMostText));
    if (answer.body.find("<CompleteMultipartUploadResult") == std::string::npos)
      return Error{Code::kIo, fmt::format("{}: the server did not join the parts ({})", files_.url(path_), xml_text(answer.body, "Code"))};
    id_.clear();
    return {};
  }

 private:
  static constexpr const char* kBytes = "application/octet-stream";
  std::string address() const { return fmt::format("{}?uploadId={}", path_, net::escaped(id_)); }

  const HttpFiles& files_;
  const std::string path_;
  std::string id_, listed_;
  int count_ = 0;
};

Result<std::string> next_part(std::ifstream& stream, const std::string& file, uint64_t bytes) {
  std::string part(bytes, '\0');
  stream.read(part.data(), static_cast<std::streamsize>(bytes));
  if (stream.bad() || !stream.is_open()) return Error{Code::kIo, file + " cannot be read"};
  part.resize(static_cast<size_t>(stream.gcount()));
  return part;
}

Status put_parts(const HttpFiles& files, const std::string& path, const std::string& file, const Contents& contents) {
  const uint64_t size = std::max(kPart, contents.bytes / kMostParts + 1);
  std::ifstream stream(file, std::ios::binary);
  Parts parts(files, path);
  SERIN_CHECK(parts.begin());
  Sha256 sum;
  for (uint64_t left = contents.bytes; left > 0;) {
    SERIN_TRY(std::string part, next_part(stream, file, std::min(left, size)));
    if (part.empty()) return changed(file, contents);
    left -= part.size();
    sum.add(part);
    SERIN_CHECK(parts.add(std::move(part)));
  }
  if (sum.take() != contents.digest) return changed(file, contents);
  return parts.complete();
}

}  // namespace

Status put_text(const HttpFiles& files, const std::string& path, const std::string& text, const std::string& tag) {
  net::Outgoing request = request_with("PUT", text, "application/json");
  if (tag.empty())
    request.headers.set("If-None-Match", "*");
  else
    request.headers.set("If-Match", tag);
  const auto done = files.send(path, request, kMostText);
  return done ? Status() : Status(done.error());
}

Status put_blob(const HttpFiles& files, const std::string& path, const std::string& file, const Contents& contents) {
  const auto there = files.send(path, {.method = "HEAD", .target = "/", .headers = {}, .body = nullptr}, kMostText);
  if (there) return {};
  if (there.error().code != Code::kNotFound) return there.error();
  if (contents.bytes > kPart) return put_parts(files, path, file, contents);
  std::ifstream stream(file, std::ios::binary);
  SERIN_TRY(std::string text, next_part(stream, file, contents.bytes + 1));
  if (digest_of(text) != contents.digest) return changed(file, contents);
  const auto done = files.send(path, request_with("PUT", std::move(text), "application/octet-stream"), kMostText);
  return done ? Status() : Status(done.error());
}

}  // namespace serin::registry
