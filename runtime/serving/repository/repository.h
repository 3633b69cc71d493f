// repository.h: what lies in the places models are served from (model_layout.h), loaded, and swapped in and out while it serves.
//
//   auto repository = Repository::open({.roots = {{"models"}}}, host);
//   (*repository)->load();                                          // what is ready is served meanwhile
//   (*repository)->load_model("digits", {}, [](Status loaded) {});  // where the control is explicit
//
// Watched, places are looked at about twice a second. A version that appears or changes is loaded and warmed aside, then swapped in whole; one that
// disappears leaves when its last request is answered. A broken one is FAILED with its reason; whatever served under that number before goes on serving. One
// that has lost all of its devices is loaded once more: there may be others.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/published.h"
#include "runtime/serving/repository/catalogue.h"
#include "runtime/serving/repository/model_layout.h"
#include "runtime/serving/repository/model_override.h"
#include "runtime/serving/settings/model_source.h"

namespace serin::serving {

class Repository {
 public:
  /// kNotFound or kInvalidArgument where one of the places is nothing to serve from. Nothing is loaded yet.
  static Result<std::unique_ptr<Repository>> open(ModelSource source, Host& host);
  /// Loads what is to be served from the start before it returns, then watches. Call once. Answers which models have no version at all, and why: versions that
  /// failed are in the catalogue.
  std::map<std::string, std::string> load();
  /// Ends watching, and drops what was asked for; what is loaded stays. From any thread but its own.
  void stop();
  /// The same, but false where a load under way is not over by then; it goes on.
  bool stop_within(std::chrono::milliseconds limit);
  ~Repository() { stop(); }

  const Published<Catalogue>& catalogue() const { return catalogue_; }
  Control control() const { return source_.control; }

  /// Called once, on the repository's thread or at once on the caller's.
  using Done = std::function<void(Status)>;
  /// Loads the versions of a model that its settings choose, or those of them that changed since, with `overrides` in place of what lies in its folder. Done when
  /// all are ready: kNotFound (no such model), kFailedPrecondition (the control is not explicit), kOverloaded, or why the first did not load.
  void load_model(std::string name, ModelOverride overrides, Done done);
  /// Takes a model away; requests under way are answered. `dependents`: and the models an ensemble is made of.
  void unload_model(std::string name, bool dependents, Done done);
  /// Serves these in place of what it was opened with: each the folder of one model, in or beside a place that it was opened with. Done when all of them are
  /// ready; kInvalidArgument, and nothing has changed; kFailedPrecondition where the control is explicit; or why one is not ready.
  void serve_roots(std::vector<ModelRoot> roots, Done done);
  /// Reads the list of models again where it has changed, and looks at all places, whatever the control. `changed` tells whether anything is served that was not,
  /// or the other way round. Done: why the list cannot be read or makes no sense, and nothing has changed; kUnavailable: why a model is not ready.
  void reload(std::shared_ptr<bool> changed, Done done);

 private:
  enum class Look : uint8_t {
    kWatching,
    kOnce,
    kAsked
  };  ///< waits until files are quiet; takes them as they are; and tries again what had failed

  struct KnownVersion {
    std::optional<Fingerprint> loaded;  ///< of what was loaded, or tried
    Fingerprint seen;                   ///< of the last look: files still being written differ from look to look
    std::vector<std::shared_ptr<Version>>
        members;  ///< of an ensemble: what its steps, and those of what still serves, were when it was made; none: it has to be made
    std::string unreadable;  ///< as it was said last
    bool moved = false;      ///< it was loaded again because it had lost its devices; not a second time: it may be what takes them down
  };
  struct Known {
    ModelFiles files;
    std::string unreadable;  ///< as it was said last
    bool said_no_version = false;
    Result<std::shared_ptr<const ModelSettings>> settings{nullptr};  ///< null: not read yet
    Fingerprint settings_read;                                       // the last that were read; and what versions that are loaded depend on
    Fingerprint settings_loaded;
    std::map<uint64_t, KnownVersion> versions;
    std::shared_ptr<const OverrideFolder> overrides;
  };

  Repository(ModelSource source, Host& host);
  void run();
  void give(std::function<Status()> work, Done done);
  static Status guarded(const std::function<Status()>& work);

  std::optional<ModelsByName> list();  ///< nothing where a place cannot be looked at
  Result<ModelFiles> find(const std::string& name);
  bool has_version(const std::string& name) const;
  std::string why_no_version(const std::string& name) const;
  std::map<std::string, std::string> missing() const;
  void note_missing();
  void scan(Look look);
  Status reconcile(const std::string& name, ModelFiles files, Look look);
  bool read_settings(const std::string& name, Known& known, const ModelFiles& files, Look look);
  Status load_version(const std::string& name, uint64_t number, const Known& known);
  static const EnsembleSettings* ensemble_of(const Known& known);  ///< null: it is none
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
  std::vector<ModelRoot> roots_;    // repository's thread only, once it runs, as the next five
  std::vector<ModelRoot> granted_;  // that it was opened with, or that the list names: a client's order leads nowhere else
  std::vector<ModelRoot> absent_;   // of those that were named: they are not there yet
  FileStamp list_seen_, list_read_;
  bool list_holds_ = true;  // what is served is what the list says
  Published<Catalogue> catalogue_;
  std::map<std::string, Known> known_;  // of those that are loaded, or tried; repository's thread only, as the next two
  ModelLister lister_;
  bool listed_ = true;  // could all places be looked at the last time?

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<size_t> waiting_bytes_{0};      // of files that came with orders
  std::deque<std::function<void()>> orders_;  // guarded by mutex_
  bool stopping_ = false, stopped_ = false;   // guarded by mutex_
  std::thread thread_;
};

}  // namespace serin::serving
