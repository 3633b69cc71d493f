// versions.h: what the manifests of a model's layout say about its versions, and how a version is written as a manifest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/registry/model_version.h"
#include "runtime/registry/oci_layout.h"

namespace serin::registry {

inline constexpr std::string_view kRetired = "dev.serin.retired", kRetiredAt = "dev.serin.retired.at";  // of an entry of the index
inline constexpr std::string_view kHistory = "dev.serin.history";                                       // of the index

/// Of an entry of the index whose manifest Serin has not made: its layers are files with names, all else may be missing.
inline constexpr std::string_view kForeign = "dev.serin.foreign";

/// The name of a model or a tag: as OCI has tags, [A-Za-z0-9_][A-Za-z0-9._-]{0,127}.
bool is_name(std::string_view name);
/// kInvalidArgument, with the rule.
Status check_name(std::string_view kind, std::string_view name);
/// The number of a version: digits without a leading 0.
std::optional<uint64_t> number_of(std::string_view text);

/// Whether an entry of the index is that of a version, and no tag or report.
bool names_version(const Descriptor& entry);
/// Ascending by number.
Result<std::vector<Version>> versions_of(const OciLayout& layout, const Index& index);
/// One of the list. kNotFound names what there is; kFailedPrecondition: it is retired, and not named by its digest.
Result<Version> choose(const std::vector<Version>& versions, const Reference& reference, bool also_retired);

/// Gives the entry of a version one more name, which any other loses. Returns the line of the record, "production (was 1)"; empty: it had it.
std::string move_tag(Index& index, const std::vector<Version>& versions, uint64_t number, const std::string& tag);

/// Digest of the names and contents of files: two models with the same files have the same.
std::string content_of(std::vector<StoredFile> files);
/// Puts the manifest; its files are in the layout already.
Result<Descriptor> put_version(const OciLayout& layout, const std::string& model, const Version& version);

/// A path of a manifest as a file below a folder: relative, without "..", empty parts or control characters.
bool is_safe_path(std::string_view path);

}  // namespace serin::registry
