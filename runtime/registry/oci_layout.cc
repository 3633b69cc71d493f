#include "runtime/registry/oci_layout.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>
#include <filesystem>

#include "runtime/base/file.h"

namespace serin::registry {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::string_view kIndexType = "application/vnd.oci.image.index.v1+json";

json::object json_of(const Annotations& annotations) {
  json::object object;
  for (const auto& [key, value] : annotations) object[key] = value;
  return object;
}

json::object json_of(const Descriptor& descriptor) {
  json::object object{{"mediaType", descriptor.media_type}, {"digest", descriptor.digest}, {"size", descriptor.size}};
  if (!descriptor.artifact_type.empty()) object["artifactType"] = descriptor.artifact_type;
  if (!descriptor.annotations.empty()) object["annotations"] = json_of(descriptor.annotations);
  return object;
}

/// Reads members with a type; the first that is wrong is named.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  const json::value* find(const json::object& object, std::string_view key) const { return object.if_contains(key); }
  Error wrong(std::string_view member, std::string_view expected) const {
    return {Code::kCorrupt, fmt::format("{}: '{}' is not {}", file_, member, expected)};
  }
  Result<json::object> parse(const std::string& text) const {
    boost::system::error_code error;
    json::value value = json::parse(text, error);
    if (error || !value.is_object()) return Error{Code::kCorrupt, fmt::format("{} is not a JSON object", file_)};
    return std::move(value.get_object());
  }
  Result<std::string> text(const json::object& object, std::string_view key, bool required) const {
    const json::value* value = find(object, key);
    if (!value && !required) return std::string();
    if (!value || !value->is_string()) return wrong(key, "a string");
    return std::string(value->get_string());
  }
  Result<Annotations> annotations(const json::object& object) const {
    Annotations list;
    const json::value* value = find(object, "annotations");
    if (!value) return list;
    if (!value->is_object()) return wrong("annotations", "an object");
    for (const auto& [key, each] : value->get_object()) {
      if (!each.is_string()) return wrong(key, "a string");
      list.emplace(key, each.get_string());
    }
    return list;
  }
  Result<Descriptor> descriptor(const json::value& value, std::string_view name) const {
    if (!value.is_object()) return wrong(name, "an object");
    const json::object& object = value.get_object();
    Descriptor read;
    SERIN_TRY(read.media_type, text(object, "mediaType", true));
    SERIN_TRY(read.artifact_type, text(object, "artifactType", false));
    SERIN_TRY(read.digest, text(object, "digest", true));
    if (!is_digest(read.digest)) return wrong("digest", "a digest by SHA-256");
    const json::value* size = find(object, "size");
    if (!size || !size->is_int64() || size->get_int64() < 0) return wrong("size", "a number of bytes");
    read.size = static_cast<uint64_t>(size->get_int64());
    SERIN_TRY(read.annotations, annotations(object));
    return read;
  }
  Result<std::vector<Descriptor>> descriptors(const json::object& object, std::string_view key) const {
    const json::value* list = find(object, key);
    if (!list || !list->is_array()) return wrong(key, "an array");
    std::vector<Descriptor> read;
    for (const json::value& each : list->get_array()) {
      SERIN_TRY(read.emplace_back(), descriptor(each, key));
    }
    return read;
  }

 private:
  std::string file_;
};

/// A name that no other writer of this folder uses.
std::string temporary_name() {
  static std::atomic<uint64_t> count{0};
  return fmt::format(".{}.{}", ::getpid(), count.fetch_add(1));
}

}  // namespace

Error io_error(const std::filesystem::path& path, const std::error_code& error) {
  return {error == std::errc::permission_denied ? Code::kPermissionDenied : Code::kIo,
          fmt::format("{}: {}", path.string(), error.message())};
}

std::string annotation(const Annotations& annotations, std::string_view key) {
  const auto found = annotations.find(key);
  return found == annotations.end() ? std::string() : found->second;
}

Result<bool> OciLayout::exists() const {
  std::error_code error;
  const bool found = fs::exists(folder_ + "/oci-layout", error);
  if (error) return io_error(folder_, error);
  return found;
}

Status OciLayout::create() const {
  std::error_code error;
  fs::create_directories(folder_ + "/blobs/sha256", error);
  if (error) return io_error(folder_, error);
  if (!fs::exists(folder_ + "/index.json", error)) SERIN_CHECK(replace_index({}));
  SERIN_TRY(const bool whole, exists());
  if (!whole) return write_file_atomically(folder_ + "/oci-layout", kLayoutMark);
  return {};
}

Result<Index> parse_index(const std::string& name, const std::string& text) {
  const Reader reader(name);
  SERIN_TRY(const json::object object, reader.parse(text));
  Index index;
  SERIN_TRY(index.manifests, reader.descriptors(object, "manifests"));
  SERIN_TRY(index.annotations, reader.annotations(object));
  return index;
}

Descriptor* entry_of(Index& index, std::string_view name) {
  const auto found =
      std::ranges::find_if(index.manifests, [&](const Descriptor& entry) { return annotation(entry.annotations, kRefName) == name; });
  return found == index.manifests.end() ? nullptr : &*found;
}

bool enter(Index& index, Descriptor entry, const std::string& name) {
  entry.annotations[std::string(kRefName)] = name;
  Descriptor* const before = entry_of(index, name);
  if (before && before->digest == entry.digest) return false;
  if (before)
    *before = std::move(entry);
  else
    index.manifests.push_back(std::move(entry));
  return true;
}

Result<Index> OciLayout::index() const {
  const std::string path = folder_ + "/index.json";
  SERIN_TRY(const std::string text, read_file(path, kMostText));
  return parse_index(path, text);
}

std::string print_index(const Index& index) {
  json::array manifests;
  for (const Descriptor& each : index.manifests) manifests.push_back(json_of(each));
  json::object object{{"schemaVersion", 2}, {"mediaType", kIndexType}, {"manifests", std::move(manifests)}};
  if (!index.annotations.empty()) object["annotations"] = json_of(index.annotations);
  return json::serialize(object);
}

Status OciLayout::replace_index(const Index& index) const { return write_file_atomically(folder_ + "/index.json", print_index(index)); }

Result<Manifest> OciLayout::manifest(const std::string& digest) const {
  SERIN_TRY(const std::string text, blob(digest));
  const Reader reader(blob_path(digest));
  SERIN_TRY(const json::object object, reader.parse(text));
  Manifest manifest;
  SERIN_TRY(manifest.artifact_type, reader.text(object, "artifactType", false));
  SERIN_TRY(manifest.annotations, reader.annotations(object));
  SERIN_TRY(manifest.layers, reader.descriptors(object, "layers"));
  const json::value* config = reader.find(object, "config");
  if (!config) return reader.wrong("config", "an object");
  SERIN_TRY(manifest.config, reader.descriptor(*config, "config"));
  if (const json::value* subject = reader.find(object, "subject")) {
    SERIN_TRY(const Descriptor of, reader.descriptor(*subject, "subject"));
    manifest.subject = of.digest;
    manifest.subject_size = of.size;
  }
  return manifest;
}

std::string OciLayout::blob_path(std::string_view digest) const {
  return fmt::format("{}/blobs/sha256/{}", folder_, digest.substr(digest.find(':') + 1));
}

Result<std::string> OciLayout::blob(const std::string& digest) const {
  SERIN_TRY(std::string text, read_file(blob_path(digest), kMostText));
  if (digest_of(text) != digest) return Error{Code::kCorrupt, blob_path(digest) + " has other contents than its digest says"};
  return text;
}

Result<Descriptor> OciLayout::put(std::string_view media_type, std::string_view text) const {
  Descriptor made{
      .media_type = std::string(media_type), .artifact_type = {}, .digest = digest_of(text), .size = text.size(), .annotations = {}};
  SERIN_CHECK(write_file_atomically(blob_path(made.digest), text));
  return made;
}

Result<Descriptor> OciLayout::put_file(std::string_view media_type, const std::string& path) const {
  const std::string copy = fmt::format("{}/blobs/sha256/{}", folder_, temporary_name());
  const auto measured = copy_file(path, copy);
  std::error_code error;
  if (!measured) {
    fs::remove(copy, error);
    return measured.error();
  }
  fs::rename(copy, blob_path(measured->digest), error);
  if (error) return io_error(copy, error);
  return Descriptor{
      .media_type = std::string(media_type), .artifact_type = {}, .digest = measured->digest, .size = measured->bytes, .annotations = {}};
}

Result<Descriptor> OciLayout::put(const Manifest& manifest) const {
  json::array layers;
  for (const Descriptor& layer : manifest.layers) layers.push_back(json_of(layer));
  json::object object{{"schemaVersion", 2},
                      {"mediaType", kManifestType},
                      {"artifactType", manifest.artifact_type},
                      {"config", json_of(manifest.config)},
                      {"layers", std::move(layers)}};
  if (!manifest.subject.empty())
    object["subject"] = json::object{{"mediaType", kManifestType}, {"digest", manifest.subject}, {"size", manifest.subject_size}};
  if (!manifest.annotations.empty()) object["annotations"] = json_of(manifest.annotations);
  SERIN_TRY(Descriptor made, put(kManifestType, json::serialize(object)));
  made.artifact_type = manifest.artifact_type;
  return made;
}

Result<std::vector<std::string>> OciLayout::blob_files() const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder_ + "/blobs/sha256", error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error) return io_error(folder_ + "/blobs/sha256", error);
  return names;
}

}  // namespace serin::registry
