// oci_layout.h: an OCI image layout in a folder: blobs by digest, and index.json, which names the manifests.
//
// Formats: OCI image specification 1.1, "Image Layout", "Image Index" and "Image Manifest" (guidelines for artifacts).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/registry/sha256.h"

namespace serin::registry {

inline constexpr std::string_view kManifestType = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kModelType = "application/vnd.serin.model.v1+json";
inline constexpr std::string_view kFileType = "application/vnd.serin.model.file.v1";
inline constexpr std::string_view kSettingsType = "application/vnd.serin.model.settings.v1+yaml";
inline constexpr std::string_view kReportType = "application/vnd.serin.report.v1";
inline constexpr std::string_view kRefName = "org.opencontainers.image.ref.name";
inline constexpr std::string_view kTitle = "org.opencontainers.image.title";
inline constexpr std::string_view kCreated = "org.opencontainers.image.created";

/// kPermissionDenied or kIo, with the path.
Error io_error(const std::filesystem::path& path, const std::error_code& error);

inline constexpr std::string_view kLayoutMark = R"({"imageLayoutVersion":"1.0.0"})";  ///< of the file oci-layout

using Annotations = std::map<std::string, std::string, std::less<>>;
/// Empty if there is none.
std::string annotation(const Annotations& annotations, std::string_view key);

struct Descriptor {
  std::string media_type, artifact_type, digest;
  uint64_t size = 0;
  Annotations annotations;
};

struct Manifest {
  std::string artifact_type, subject;  ///< subject: digest of another manifest, or empty
  uint64_t subject_size = 0;
  Descriptor config;
  std::vector<Descriptor> layers;
  Annotations annotations;
};

struct Index {
  std::vector<Descriptor> manifests;
  Annotations annotations;
};

inline constexpr size_t kMostText = 16 << 20;  ///< bytes of an index or a manifest

/// kCorrupt begins with `name`, and names the member that is wrong.
Result<Index> parse_index(const std::string& name, const std::string& text);
std::string print_index(const Index& index);
/// The entry with that number or tag; null: there is none.
Descriptor* entry_of(Index& index, std::string_view name);
/// Makes the entry with that name, or replaces it. False: it is so already.
bool enter(Index& index, Descriptor entry, const std::string& name);

class OciLayout {
 public:
  explicit OciLayout(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  /// Errors: kPermissionDenied, kIo.
  Result<bool> exists() const;
  /// Makes the folder and an index without manifests, unless they are there. Errors: kPermissionDenied, kIo.
  Status create() const;

  /// kCorrupt names the file and the member that is wrong.
  Result<Index> index() const;
  Status replace_index(const Index& index) const;
  Result<Manifest> manifest(const std::string& digest) const;  ///< compared with its digest

  std::string blob_path(std::string_view digest) const;
  /// The text of a small blob, compared with its digest.
  Result<std::string> blob(const std::string& digest) const;
  Result<Descriptor> put(std::string_view media_type, std::string_view text) const;
  Result<Descriptor> put_file(std::string_view media_type, const std::string& path) const;
  /// Of a manifest, with the media type of one.
  Result<Descriptor> put(const Manifest& manifest) const;
  /// File names in blobs/sha256: digests, and what a killed writer has left.
  Result<std::vector<std::string>> blob_files() const;

 private:
  std::string folder_;
};

}  // namespace serin::registry
