// remote_folder.h: a registry whose folder a web server or a bucket of S3 offers, file by file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/registry/remote.h"
#include "runtime/registry/s3_bucket.h"

namespace serin::registry {

class Shipment;

class RemoteFolder : public Remote {
 public:
  /// `bucket`: null: a web server, which has no list of models and is read only.
  RemoteFolder(net::Url base, std::shared_ptr<const net::TlsContext> tls, std::shared_ptr<const S3Bucket> bucket, std::string mirror)
      : Remote(std::move(base), tls, bucket, std::move(mirror)), tls_(std::move(tls)), bucket_(std::move(bucket)) {}

  Status refresh(const Reference& reference) override;  ///< of all versions of the model
  Result<std::vector<std::string>> refresh_all() override;
  Result<Pushed> push(const std::string& folder, const Reference& reference, const std::string& by) override;

 private:
  std::string blob_name(const std::string& model, std::string_view digest) const override { return OciLayout(model).blob_path(digest); }
  Status take_manifests(const OciLayout& layout, const std::string& model, const Index& index) const;
  Result<Pushed> push_once(const Shipment& shipment, const std::string& by);

  const std::shared_ptr<const net::TlsContext> tls_;
  const std::shared_ptr<const S3Bucket> bucket_;
  std::map<std::string, TextFile> indices_;  // as last read, by model
};

}  // namespace serin::registry
