// repository.h: a folder of models, watched.
//
//   models/digits/serin.yaml            optional settings
//   models/digits/1/model.onnx          version 1
//
// Scanned about twice a second. A version that appears or changes is loaded and warmed aside, then swapped in whole; one that disappears leaves
// when its last request is answered. A broken one is FAILED with its reason; whatever served under that number before goes on serving. One that has lost all of
// its devices is loaded once more: there may be others.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/published.h"
#include "runtime/serving/version.h"

namespace serin::serving {

enum class VersionState : uint8_t { kLoading, kReady, kFailed };

struct VersionEntry {
  VersionState state = VersionState::kLoading;
  std::string reason;                ///< of kFailed; also set beside kReady when a newer file under that number is broken
  std::shared_ptr<Version> version;  ///< set where it is ready
};

struct ModelEntry {
  std::map<uint64_t, VersionEntry> versions;
  Labels labels;  ///< as serin.yaml says
  /// The highest ready version: what a request without a version gets. Null: none is ready.
  std::shared_ptr<Version> latest() const;
  /// The numbers of those that are ready, rising.
  std::vector<std::string> ready_versions() const;
};

/// What the repository holds right now. Immutable; a new one is published for every change.
struct Catalogue {
  std::map<std::string, ModelEntry, std::less<>> models;
  /// That version, ready to run; `version` empty: the latest. kNotFound, kUnavailable (and why).
  Result<std::shared_ptr<Version>> find(std::string_view model, std::string_view version) const;
  /// The number behind a label, whether or not that version is there. kInvalidArgument: the model, if it is one, has no such label.
  Result<std::string> version_of(std::string_view model, std::string_view label) const;
  /// kUnavailable where a version that is loaded can answer nothing any more (Version::usable).
  Status usable() const;
};

class Repository {
 public:
  /// kNotFound or kInvalidArgument where the folder is not one. Nothing is loaded yet.
  static Result<std::unique_ptr<Repository>> open(std::string folder, std::chrono::milliseconds poll, Host& host);
  /// Scans once and loads what is there before it returns, then watches. Call once; what is ready is served meanwhile.
  void load();
  ~Repository();

  const Published<Catalogue>& catalogue() const { return catalogue_; }

 private:
  /// What a version's files look like from outside: any difference means that they were changed.
  struct Fingerprint {
    std::vector<int64_t> parts;
    friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
  };
  struct Known {
    Fingerprint loaded;  ///< of what was loaded, or tried
    Fingerprint seen;    ///< of the last scan: files still being written differ from scan to scan
    bool moved = false;  ///< it was loaded again because it had lost its devices; not a second time: it may be what takes them down
  };
  using Key = std::pair<std::string, uint64_t>;

  Repository(std::string folder, std::chrono::milliseconds poll, Host& host);
  void watch();
  void scan(bool wait_for_quiet);
  std::optional<std::map<Key, Fingerprint>> list() const;  ///< nothing where the folder cannot be listed
  void load_version(const Key& key);
  bool has_lost_its_devices(const Key& key) const;
  /// `labels`: of the model, where its settings have been read.
  void update(const Key& key, VersionEntry entry, const Labels* labels = nullptr);
  void remove(const Key& key);

  const std::string folder_;
  const std::chrono::milliseconds poll_;
  Host& host_;
  Published<Catalogue> catalogue_;
  std::map<Key, Known> known_;                  // scanning thread only
  mutable std::map<std::string, bool> warned_;  // names complained about once; scanning thread only
  bool listed_ = true;                          // could the folder be listed the last time? scanning thread only

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace serin::serving
