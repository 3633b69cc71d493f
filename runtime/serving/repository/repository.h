// repository.h: loads models from the places that they are served from (model_layout.h), and replaces them while the server runs.
//
//   auto repository = Repository::open({.roots = {{"models"}}}, host, schedulers);
//   (*repository)->load();                                          // ready versions are served meanwhile
//   (*repository)->load_model("digits", {}, [](Status loaded) {});  // if the control is explicit
//
// Watched places are checked about twice a second. A new or changed version is loaded and warmed in the background, then replaces the old
// one as a whole. A removed version ends after its last request is answered. An invalid version is FAILED with its reason, and the version
// that served under that number continues. A version that has lost all of its devices is loaded once more, possibly on other devices.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/base/file.h"
#include "runtime/base/published.h"
#include "runtime/serving/repository/catalogue.h"
#include "runtime/serving/repository/model_layout.h"
#include "runtime/serving/repository/model_override.h"
#include "runtime/serving/settings/model_source.h"

namespace serin::serving {

class Repository {
 public:
  /// kNotFound or kInvalidArgument if nothing can be served from one of the places. Nothing is loaded yet.
  static Result<std::unique_ptr<Repository>> open(ModelSource source, Host& host, const SchedulerFactory& schedulers);
  /// Loads the models of the start, then returns and watches. Call it once. Returns the models without any version, with the reason; failed
  /// versions are in the catalogue.
  std::map<std::string, std::string> load();
  /// Ends watching and drops pending requests; loaded models stay. Callable from any thread except its own.
  void stop();
  /// The same, but returns false if a load in progress takes longer; the load continues.
  bool stop_within(std::chrono::milliseconds limit);
  ~Repository() { stop(); }

  const Published<Catalogue>& catalogue() const { return catalogue_; }
  Control control() const { return source_.control; }

  /// Called once, on the repository's thread, or at once on the caller's.
  using Done = std::function<void(Status)>;
  /// Loads the versions of a model that its settings choose, or those that changed since; `overrides` replace files of its folder. Done
  /// when all are ready: kNotFound (no such model), kFailedPrecondition (the control is not explicit), kOverloaded, or the error of the
  /// first failed version.
  void load_model(std::string name, ModelOverride overrides, Done done);
  /// Unloads a model; requests in progress are answered. `dependents`: also unloads the models that an ensemble consists of.
  void unload_model(std::string name, bool dependents, Done done);
  /// Serves these places instead of the current ones. Each is the folder of one model, in or next to a place that the repository was opened
  /// with. Done when all are ready, or with the error of one that is not. kInvalidArgument: nothing has changed. kFailedPrecondition: the
  /// control is explicit.
  void serve_roots(std::vector<ModelRoot> roots, Done done);
  /// Reads the list of models again if it has changed, and checks all places, whatever the control. `changed` reports whether the set of
  /// served models changed. Done: the list cannot be read or is invalid, and nothing has changed; or kUnavailable: a model is not ready,
  /// with the reason.
  void reload(std::shared_ptr<bool> changed, Done done);

 private:
  enum class Look : uint8_t {
    kWatching,
    kOnce,
    kAsked
  };  ///< waits until files no longer change; takes them as they are; and also retries failed versions

  struct KnownVersion {
    std::optional<Fingerprint> loaded;  ///< of the version that was loaded, or tried
    Fingerprint seen;                   ///< from the last check: files still being written differ between checks
    std::vector<std::shared_ptr<Version>>
        members;  ///< for an ensemble: the versions of its steps, including those that still serve, when it was made; none: it must be made
    std::string unreadable;  ///< text that was last logged
    /// It was loaded again because it had lost its devices; not a second time, because it may be the cause of the loss.
    bool moved = false;
  };
  struct Known {
    ModelFiles files;
    std::string unreadable;  ///< text that was last logged
    bool said_no_version = false;
    Result<std::shared_ptr<const ModelSettings>> settings{nullptr};  ///< null: not read yet
    Fingerprint settings_read;                                       // those last read; and those that loaded versions depend on
    Fingerprint settings_loaded;
    std::map<uint64_t, KnownVersion> versions;
    std::shared_ptr<const OverrideFolder> overrides;
  };

  Repository(ModelSource source, Host& host, const SchedulerFactory& schedulers);
  void run();
  void give(std::function<Status()> work, Done done);
  static Status guarded(const std::function<Status()>& work);

  std::optional<ModelsByName> list();  ///< nothing if a place cannot be examined
  Result<ModelFiles> find(const std::string& name);
  bool has_version(const std::string& name) const;
  std::string why_no_version(const std::string& name) const;
  std::map<std::string, std::string> missing() const;
  void note_missing();
  void scan(Look look);
  Status reconcile(const std::string& name, ModelFiles files, Look look);
  bool read_settings(const std::string& name, Known& known, const ModelFiles& files, Look look);
  Status load_version(const std::string& name, uint64_t number, const Known& known);
  static const EnsembleSettings* ensemble_of(const Known& known);  ///< null: it is not an ensemble
  bool has_members(const ModelSettings& settings) const;
  std::set<std::string> steps_of(const std::string& name) const;
  std::vector<std::string> way(const std::string& from, const std::string& to, std::set<std::string>& visited) const;
  bool comes_later(const std::string& name, const EnsembleSettings& ensemble) const;
  bool may_be_ensemble(const ModelFiles& files, const std::string& config) const;
  void load_parts(const EnsembleSettings& ensemble);
  void settle_ensembles();
  Result<std::shared_ptr<Version>> make_ensemble(const std::string& name, uint64_t number, const ModelSettings& settings);
  void move_lost();
  void move_lost(const std::string& name, Known& known);
  Status load_now(const std::string& name, const ModelOverride& overrides);
  Status unload_now(const std::string& name, bool dependents);
  Status check_places();
  Status check_labels(const std::vector<ModelRoot>& roots);
  std::vector<ModelRoot> present_of(std::vector<ModelRoot> roots);
  void watch_list();
  void take_what_has_come();
  Result<bool> read_list();
  Status reload_now(bool& changed);
  Status serve_now(std::vector<ModelRoot> roots);
  bool may_serve(const std::string& path) const;
  std::string reason_of(const std::string& name) const;
  static std::string for_clients(std::string message, std::string_view subject, const std::string& folder);

  std::optional<VersionEntry> entry(const std::string& name, uint64_t number) const;
  void change(const std::function<void(Catalogue&)>& how);
  void update(const std::string& name, uint64_t number, VersionEntry entry);
  void relabel(const std::string& name, const std::shared_ptr<const ModelSettings>& before);
  void remove_version(const std::string& name, uint64_t number);
  void remove_model(const std::string& name);

  const ModelSource source_;
  Host& host_;
  const SchedulerFactory& schedulers_;
  std::vector<ModelRoot> roots_;    // used by the repository's thread only, once it runs, like the next five
  std::vector<ModelRoot> granted_;  // places at opening, or in the list: an admin request can reach no others
  std::vector<ModelRoot> absent_;   // named places that do not exist yet
  std::vector<FileStamp> list_seen_, list_read_;
  std::chrono::steady_clock::time_point list_retry_ = std::chrono::steady_clock::time_point::max();
  bool list_holds_ = true;  // the served models correspond to the list
  Published<Catalogue> catalogue_;
  std::map<std::string, Known> known_;  // loaded or tried models; used by the repository's thread only, like the next two
  ModelLister lister_;
  bool listed_ = true;  // all places could be examined the last time

  Mutex mutex_;
  Condition wake_;
  std::atomic<size_t> waiting_bytes_{0};  // bytes of files in pending admin requests
  std::deque<std::function<void()>> orders_ SERIN_GUARDED_BY(mutex_);
  bool stopping_ SERIN_GUARDED_BY(mutex_) = false;
  bool stopped_ SERIN_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace serin::serving
