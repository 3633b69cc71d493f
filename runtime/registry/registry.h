// registry.h: versions of models in a folder, each under the digest of its contents, with tags, origin, reports and a record of all changes.
//
//   Registry registry("registry");
//   SERIN_TRY(const Added added, registry.add("digits", {.model = "model.onnx", .origin = {{"commit", "4f2c"}}}, "ci"));
//   SERIN_CHECK(registry.tag(Reference{"digits", "3"}, "production", "ci"));
//   SERIN_TRY(const Pulled pulled, registry.pull(Reference{"digits", "production"}, "models"));   // models/digits/3/model.onnx
//
// Each model is one OCI image layout (image-spec 1.1: oci-layout, index.json, blobs/sha256), so skopeo, oras and container registries carry
// it as it is. A version is an artifact manifest whose layers are the model's files; a tag is an entry of index.json; a report refers to its
// version by `subject`. Writers of one model wait for each other. A change shows in one step, when index.json is replaced: a process that is
// killed before leaves blobs that nothing names, which gc() removes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/registry/history.h"
#include "runtime/registry/model_version.h"

namespace serin::registry {

struct Addition {
  std::string model;               ///< a file, or the folder of a version; its subfolders are included
  std::string settings;            ///< serin.yaml of the model; empty: none
  std::optional<uint64_t> number;  ///< else one above the highest
  Origin origin;
  std::string details = "{}";
};
struct Added {
  Version version;
  bool existed = false;  ///< a version with these contents was there already; nothing has changed
};

/// The `content` of the version that add() would make, without making one. Errors: as add().
Result<std::string> content_digest(const Addition& addition);

struct Pulled {
  Version version;
  std::string folder;    ///< of the version: DESTINATION/digits/3
  bool existed = false;  ///< it was there already, with the same contents
};

/// Whether pull() writes serin.yaml next to the folder of the version.
enum class Settings : uint8_t { kWrite, kLeave };

struct Collected {
  std::vector<std::string> versions;  ///< retired ones that were removed: "digits:3"
  uint64_t blobs = 0, bytes = 0;
};

class Registry {
 public:
  /// The folder is made by the first add().
  explicit Registry(std::string folder) : folder_(std::move(folder)) {}

  /// Copies the files and names them. kAlreadyExists: that number has other contents, or contents that have another number;
  /// kInvalidArgument: a name, a link, a file that is no regular one.
  Result<Added> add(const std::string& model, const Addition& addition, const std::string& by);
  /// Moves or makes a tag. kFailedPrecondition: the version is retired. kInvalidArgument: a number is no tag.
  Status tag(const Reference& reference, const std::string& tag, const std::string& by);
  /// kNotFound if there is none.
  Status untag(const std::string& model, const std::string& tag, const std::string& by);
  /// From now on it is neither `latest` nor tagged nor pulled, except by its digest. kFailedPrecondition: it has a tag.
  Status retire(const Reference& reference, const std::string& reason, const std::string& by);
  /// Attaches a file, such as a report of an evaluation.
  Status attach(const Reference& reference, const std::string& file, const std::string& by);

  Result<std::vector<std::string>> models() const;
  Result<std::vector<Version>> versions(const std::string& model) const;  ///< ascending
  Result<Version> find(const Reference& reference) const;                 ///< kNotFound names what there is
  Result<std::vector<Change>> history(const std::string& model) const;

  /// Writes DESTINATION/model/number, as `serin serve --models DESTINATION` reads it. Each byte is compared with its digest first; the
  /// folder appears in one step. kCorrupt names the file; kAlreadyExists: there is a folder with other contents.
  Result<Pulled> pull(const Reference& reference, const std::string& destination, Settings settings = Settings::kWrite) const;
  /// Reads everything and answers each problem: digests, sizes, names, the chain of the history. kNotFound: no such model.
  Result<std::vector<std::string>> verify(const std::string& model) const;
  /// Removes versions that were retired at least `days` ago, and blobs that nothing names.
  Result<Collected> gc(const std::string& model, int days, const std::string& by);

 private:
  class Writer;
  std::string folder_;
};

}  // namespace serin::registry
