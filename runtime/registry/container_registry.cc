#include "runtime/registry/container_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

#include "runtime/base/file.h"
#include "runtime/base/json_at.h"
#include "runtime/registry/folder_lock.h"
#include "runtime/registry/versions.h"

namespace serin::registry {
namespace {

constexpr std::string_view kVersionOfImage = "org.opencontainers.image.version";
constexpr std::string_view kFolderOfOras = "io.deis.oras.content.unpack";

/// Distribution specification: [a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*. A server refuses the few others that this lets through.
Status check_repository(const std::string& model) {
  SERIN_CHECK(check_name("model", model));
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (std::ranges::any_of(model, upper)) return invalid(fmt::format("model '{}': names in a container registry are lower case", model));
  return {};
}

/// Two artifacts have different numbers in practice: it is made of 32 bits.
uint64_t number_by_digest(std::string_view digest) {
  constexpr size_t kDigits = 8;
  const std::string_view digits = digest.substr(sizeof("sha256:") - 1, kDigits);
  uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return std::max<uint32_t>(number, 1);
}

/// A version of Serin has its number. Nothing: `tag` is a number that the version does not have.
std::optional<uint64_t> number_for(const Manifest& manifest, const std::string& digest, const std::string& tag, const Index& index) {
  const auto own = number_of(annotation(manifest.annotations, kVersionOfImage)), tagged = number_of(tag);
  if (manifest.artifact_type == kModelType && own) return tagged.value_or(*own) == *own ? own : std::nullopt;
  if (tagged) return tagged;
  for (const Descriptor& entry : index.manifests)
    if (entry.digest == digest && names_version(entry)) return number_of(annotation(entry.annotations, kRefName));
  return own ? own : number_by_digest(digest);
}

Status check_layers(const Manifest& manifest, const std::string& url) {
  for (const Descriptor& layer : manifest.layers) {
    const std::string title = annotation(layer.annotations, kTitle);
    if (title.empty())
      return Error{Code::kUnsupported,
                   fmt::format("{}: has layers without a file name ({}): it is an image, and no artifact of files", url, kTitle)};
    if (annotation(layer.annotations, kFolderOfOras) == "true")
      return Error{Code::kUnsupported, fmt::format("{}: {} is an archive of a folder; push its files", url, quotable(title))};
  }
  return {};
}

}  // namespace

std::string ContainerRegistry::blob_name(const std::string& model, std::string_view digest) const {
  return fmt::format("{}/blobs/{}", model, digest);
}

Status ContainerRegistry::refresh(const Reference& reference) {
  SERIN_CHECK(check_repository(reference.model));
  if (reference.version.empty()) return refresh_tags(reference.model);
  const std::string name = fmt::format("{}/manifests/{}", reference.model, reference.version), url = files_.url(name);
  TextFile& known = manifests_[reference.str()];
  SERIN_TRY(auto read, files_.read(name, kMostText, known.tag));
  const std::string digest = digest_of(read ? read->text : known.text);
  if (is_digest(reference.version) && digest != reference.version)
    return Error{Code::kCorrupt, fmt::format("{}: has other contents than its digest says (it has {})", url, digest)};
  if (read && parse_index(url, read->text))
    return Error{Code::kUnsupported, url + ": is a list of several manifests; name one of them by its digest"};
  if (read) known = *std::move(read);

  const OciLayout layout(mirror_ + "/" + reference.model);
  SERIN_CHECK(layout.create());
  if (!layout.blob(digest)) SERIN_CHECK(write_file_atomically(layout.blob_path(digest), known.text));
  const auto manifest = layout.manifest(digest);
  if (!manifest) return manifest.error().in(url);
  SERIN_CHECK(check_layers(*manifest, url));
  const bool is_model = manifest->artifact_type == kModelType;
  if (is_model) SERIN_CHECK(take_text(layout, reference.model, manifest->config));

  SERIN_TRY(const FolderLock lock, FolderLock::acquire(layout.folder(), FolderLock::Mode::kExclusive));
  SERIN_TRY(Index index, layout.index());
  const std::string tag = is_digest(reference.version) ? std::string() : reference.version;
  const auto number = number_for(*manifest, digest, tag, index);
  if (!number)
    return Error{Code::kFailedPrecondition, fmt::format("{}: this tag is a number, and the version has the number {}", url,
                                                        annotation(manifest->annotations, kVersionOfImage))};
  Descriptor entry{.media_type = std::string(kManifestType),
                   .artifact_type = manifest->artifact_type,
                   .digest = digest,
                   .size = known.text.size(),
                   .annotations = {}};
  if (!is_model) entry.annotations.emplace(kForeign, "true");
  bool changed = enter(index, entry, std::to_string(*number));
  if (!tag.empty() && !number_of(tag)) changed = enter(index, std::move(entry), tag) || changed;
  return changed ? layout.replace_index(index) : Status();
}

Status ContainerRegistry::refresh_tags(const std::string& model) {
  const std::string name = model + "/tags/list";
  SERIN_TRY(const auto read, files_.read(name, kMostText));
  boost::system::error_code error;
  const boost::json::value body = boost::json::parse(read->text, error);
  const boost::json::value* const tags = error ? nullptr : json_at::find(body, "/tags");
  if (!tags || !tags->is_array()) return Error{Code::kCorrupt, files_.url(name) + ": no list of tags"};
  for (const boost::json::value& tag : tags->get_array())
    if (tag.is_string() && is_name(std::string_view(tag.get_string()))) SERIN_CHECK(refresh({model, std::string(tag.get_string())}));
  return {};
}

}  // namespace serin::registry
