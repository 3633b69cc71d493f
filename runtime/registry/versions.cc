#include "runtime/registry/versions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "runtime/base/json_quote.h"
#include "runtime/base/number.h"

namespace serin::registry {
namespace {

constexpr std::string_view kVersionNumber = "org.opencontainers.image.version";
constexpr std::string_view kBy = "dev.serin.by", kContent = "dev.serin.content", kOrigin = "dev.serin.origin.";

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

Error corrupt(const OciLayout& layout, const std::string& digest, std::string_view why) {
  return {Code::kCorrupt, fmt::format("{}: {}", layout.blob_path(digest), why)};
}

Result<Version> read_version(const OciLayout& layout, const Descriptor& entry) {
  SERIN_TRY(const Manifest manifest, layout.manifest(entry.digest));
  const bool foreign = entry.annotations.contains(kForeign);
  if (manifest.artifact_type != kModelType && !foreign)
    return corrupt(layout, entry.digest, fmt::format("artifactType '{}' is not {}", manifest.artifact_type, kModelType));
  Version version{.number = *number_of(annotation(entry.annotations, kRefName)),
                  .digest = entry.digest,
                  .content = annotation(manifest.annotations, kContent),
                  .added = annotation(manifest.annotations, kCreated),
                  .by = annotation(manifest.annotations, kBy)};
  for (const auto& [key, value] : manifest.annotations)
    if (key.starts_with(kOrigin)) version.origin.emplace(key.substr(kOrigin.size()), value);
  for (const Descriptor& layer : manifest.layers) {
    const std::string path = annotation(layer.annotations, kTitle);
    std::string quoted;
    append_json_quoted(quoted, path);
    if (!is_safe_path(path)) return corrupt(layout, entry.digest, quoted + " is no name of a file in a folder");
    version.files.push_back({path, layer.digest, layer.size, layer.media_type == kSettingsType || (foreign && path == "serin.yaml")});
  }
  if (foreign) {
    version.content = content_of(version.files);
    version.details = "{}";
  } else {
    SERIN_TRY(version.details, layout.blob(manifest.config.digest));
  }
  if (entry.annotations.contains(kRetired)) version.retired = annotation(entry.annotations, kRetired);
  return version;
}

std::string known(const std::vector<Version>& versions) {
  std::vector<std::string> names;
  for (const Version& version : versions) {
    names.push_back(std::to_string(version.number));
    names.insert(names.end(), version.tags.begin(), version.tags.end());
  }
  return names.empty() ? "there are none" : fmt::format("there are {}", fmt::join(names, ", "));
}

bool is_meant(const Version& version, const std::string& wanted) {
  return wanted == version.digest || wanted == std::to_string(version.number) ||
         std::ranges::find(version.tags, wanted) != version.tags.end();
}

}  // namespace

uint64_t Version::bytes() const {
  return std::accumulate(files.begin(), files.end(), uint64_t{0}, [](uint64_t sum, const StoredFile& file) { return sum + file.bytes; });
}

Result<Reference> Reference::parse(std::string_view text) {
  const size_t at = text.find_first_of(":@");
  Reference reference{.model = std::string(text.substr(0, at))};
  SERIN_CHECK(check_name("model", reference.model));
  if (at == std::string_view::npos) return reference;
  reference.version = text.substr(at + 1);
  if (text[at] == '@' && !is_digest(reference.version)) return invalid(fmt::format("'{}': after '@' stands sha256: and 64 digits", text));
  if (text[at] == ':') SERIN_CHECK(check_name("version", reference.version));
  return reference;
}

std::string Reference::str() const { return model + (is_digest(version) ? "@" : ":") + version; }

bool is_name(std::string_view name) {
  constexpr size_t kMostBytes = 128;
  const auto allowed = [](char c) { return is_letter_or_digit(c) || c == '_' || c == '.' || c == '-'; };
  return !name.empty() && name.size() <= kMostBytes && std::ranges::all_of(name, allowed) && name.front() != '.' && name.front() != '-';
}

Status check_name(std::string_view kind, std::string_view name) {
  if (is_name(name)) return {};
  return invalid(
      fmt::format("{} '{}': a name has 1 to 128 letters, digits, '_', '.' and '-', and begins with none of the last two", kind, name));
}

std::optional<uint64_t> number_of(std::string_view text) {
  const auto number = parse_number<uint64_t>(text);
  return number && *number > 0 && text.front() != '0' ? number : std::nullopt;
}

bool names_version(const Descriptor& entry) { return number_of(annotation(entry.annotations, kRefName)).has_value(); }

Result<std::vector<Version>> versions_of(const OciLayout& layout, const Index& index) {
  std::vector<Version> versions;
  for (const Descriptor& entry : index.manifests) {
    if (!names_version(entry)) continue;
    SERIN_TRY(versions.emplace_back(), read_version(layout, entry));
  }
  std::ranges::sort(versions, {}, &Version::number);
  const auto by_digest = [&](const std::string& digest) { return std::ranges::find(versions, digest, &Version::digest); };
  for (const Descriptor& entry : index.manifests) {
    if (names_version(entry)) continue;
    const std::string tag = annotation(entry.annotations, kRefName);
    if (!tag.empty()) {
      if (const auto version = by_digest(entry.digest); version != versions.end()) version->tags.push_back(tag);
    } else if (entry.artifact_type == kReportType) {
      SERIN_TRY(const Manifest report, layout.manifest(entry.digest));
      const auto version = by_digest(report.subject);
      for (const Descriptor& file : report.layers)
        if (version != versions.end())
          version->reports.push_back(
              {annotation(file.annotations, kTitle), file.digest, annotation(report.annotations, kCreated), file.size});
    }
  }
  return versions;
}

Result<Version> choose(const std::vector<Version>& versions, const Reference& reference, bool also_retired) {
  auto found = versions.end();
  if (const auto tagged = std::ranges::find_if(versions, [](const Version& each) { return is_meant(each, "latest"); });
      reference.version == "latest" && tagged != versions.end()) {  // in a container registry it is a tag like any other
    found = tagged;
  } else if (reference.version == "latest") {
    const auto last = std::find_if(versions.rbegin(), versions.rend(), [](const Version& version) { return !version.retired; });
    if (last != versions.rend()) found = std::prev(last.base());
  } else {
    found = std::ranges::find_if(versions, [&](const Version& version) { return is_meant(version, reference.version); });
  }
  if (found == versions.end()) return Error{Code::kNotFound, fmt::format("{}: no such version; {}", reference.str(), known(versions))};
  if (found->retired && !also_retired && reference.version != found->digest)
    return Error{Code::kFailedPrecondition, fmt::format("{} is retired: {}; its digest still names it: {}@{}", reference.str(),
                                                        *found->retired, reference.model, found->digest)};
  return *found;
}

std::string move_tag(Index& index, const std::vector<Version>& versions, uint64_t number, const std::string& tag) {
  Descriptor moved = *entry_of(index, std::to_string(number));
  moved.annotations[std::string(kRefName)] = tag;
  Descriptor* const before = entry_of(index, tag);
  if (!before) {
    index.manifests.push_back(std::move(moved));
    return tag + " (new)";
  }
  if (before->digest == moved.digest) return {};
  const auto old = std::ranges::find(versions, before->digest, &Version::digest);
  std::string was = old == versions.end() ? before->digest : std::to_string(old->number);
  *before = std::move(moved);
  return fmt::format("{} (was {})", tag, was);
}

std::string content_of(std::vector<StoredFile> files) {
  std::ranges::sort(files, {}, [](const StoredFile& file) { return std::pair(file.settings, file.path); });
  std::string text;
  for (const StoredFile& file : files) text += fmt::format("{}{}\n{}\n", file.settings ? "settings " : "", file.path, file.digest);
  return digest_of(text);
}

Result<Descriptor> put_version(const OciLayout& layout, const std::string& model, const Version& version) {
  Manifest manifest{.artifact_type = std::string(kModelType), .subject = {}, .config = {}, .layers = {}, .annotations = {}};
  SERIN_TRY(manifest.config, layout.put(kModelType, version.details));
  for (const StoredFile& file : version.files)
    manifest.layers.push_back({.media_type = std::string(file.settings ? kSettingsType : kFileType),
                               .artifact_type = {},
                               .digest = file.digest,
                               .size = file.bytes,
                               .annotations = {{std::string(kTitle), file.path}}});
  manifest.annotations = {{std::string(kTitle), model},
                          {std::string(kVersionNumber), std::to_string(version.number)},
                          {std::string(kCreated), version.added},
                          {std::string(kBy), version.by},
                          {std::string(kContent), version.content}};
  for (const auto& [key, value] : version.origin) manifest.annotations.emplace(std::string(kOrigin) + key, value);
  SERIN_TRY(Descriptor made, layout.put(manifest));
  made.annotations.emplace(kRefName, std::to_string(version.number));
  return made;
}

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > 4096 ||
      std::ranges::any_of(path, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }))
    return false;
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace serin::registry
