// s3_bucket.h: a folder of a bucket of S3 or a server that speaks its protocol: its URL, signed requests, what its refusals mean.
//
//   SERIN_TRY(const auto bucket, S3Bucket::open("s3://models/registry"));
//   const HttpFiles files(bucket->folder_url(), tls, bucket);
//
// Endpoint, region and keys are those that AWS's own tools use (aws_settings.h). At an endpoint of AWS the bucket is a part of the host, at any
// other the first part of the path. Without keys, requests are not signed, as for a public bucket.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/net/http.h"
#include "runtime/registry/aws_settings.h"
#include "runtime/registry/http_files.h"
#include "runtime/registry/web_identity.h"

namespace serin::registry {

class S3Bucket : public Access {
 public:
  /// Whether a text begins as such an address.
  static bool is_address(std::string_view text);
  /// "s3://BUCKET" or "s3://BUCKET/PREFIX"; the prefix is the plain name of a folder, not percent-encoded. Errors: kInvalidArgument names what
  /// is wrong with the address, the endpoint or the region; those of aws_credentials() and of WebIdentity.
  /// `tls`: for the exchange of a web identity; null: none over https.
  static Result<std::shared_ptr<const S3Bucket>> open(std::string_view address, std::shared_ptr<const net::TlsContext> tls = nullptr);

  const net::Url& folder_url() const { return folder_; }
  const net::Url& bucket_url() const { return bucket_url_; }

  Status authorise(const net::Origin& origin, net::Outgoing& request) const override;
  /// Names the bucket, the key, S3's code and what to do. A code that Serin does not know comes with the server's sentence. kFailedPrecondition:
  /// no such bucket, another region, the clock; kConflict: a condition does not hold.
  Error refusal(const net::Url& url, const net::Response& answer, const std::string& said) const override;

  /// Names of the folders in that of the bucket. Errors: as HttpFiles::read(); kTooLarge: more than 100 pages.
  static Result<std::vector<std::string>> folders(const std::shared_ptr<const S3Bucket>& bucket,
                                                  const std::shared_ptr<const net::TlsContext>& tls);
  /// All files below that of the bucket, by their names relative to it. Errors: as folders(); kCorrupt: a name that leaves a folder.
  static Result<std::vector<ListedFile>> files(const std::shared_ptr<const S3Bucket>& bucket,
                                               const std::shared_ptr<const net::TlsContext>& tls);

 private:
  /// Each page of a list; `query`: what it asks for besides the prefix.
  using UsePage = std::function<Status(const std::string& xml)>;
  Status list(const HttpFiles& files, std::string_view query, const UsePage& use) const;
  S3Bucket(std::string name, std::string prefix, std::string region)
      : name_(std::move(name)), prefix_(std::move(prefix)), region_(std::move(region)) {}
  Result<AwsCredentials> credentials() const;
  Status place_at(const std::string& endpoint);
  std::string named(const net::Url& url) const;

  const std::string name_, prefix_, region_;  // prefix_: as given, with '/' at its end; or empty
  net::Url bucket_url_, folder_;              // without '/' at the end
  std::unique_ptr<WebIdentity> identity_;     // null: there is none
};

}  // namespace serin::registry
