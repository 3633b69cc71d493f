// kubernetes_state.h: The content of one service's state in the Kubernetes API, and the objects that it names.
//
// The API changes one object at a time, so one object is the truth: the state. It holds the record and the latest entries of the audit log.
// It names the objects that hold the earlier entries and the verdicts. Those are named by their content, and written before the state. A write
// that is cut off leaves at most an object that no state names.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "router/store/store.h"

namespace serin::store {

inline constexpr size_t kEntriesOfPage = 100;  ///< of the audit log

/// An object that never changes once it is written.
struct KubernetesBlob {
  std::string name, type, service, data;  ///< type: "audit" or "verdict"
};

/// On whose behalf a state is written.
struct KubernetesWriter {
  std::string group;   ///< of routers that share it: part of the names of blobs
  std::string writer;  ///< the run of a router
};

/// How much of a change's history and verdicts is written.
struct KubernetesProgress {
  size_t entries = 0, verdicts = 0;
};

struct KubernetesState {
  struct Verdict {
    std::string id, object;
  };

  std::string version;   ///< resourceVersion; empty: it does not exist
  int64_t revision = 0;  ///< counts the changes
  int64_t entries = 0;   ///< of the audit log, in total
  std::string digest;    ///< of the last one
  std::string rollout;   ///< id
  std::vector<HistoryEntry> latest;
  std::vector<std::string> pages;  ///< names of blobs, oldest first
  std::vector<Verdict> verdicts;   ///< oldest first
  std::string writer;              ///< the run of a router that wrote it
  KubernetesProgress wrote;        ///< of that change: with it a router recognises its own write without a confirmation

  /// `data` as write() returned it. Fields that are missing stay empty.
  static KubernetesState read(const boost::json::object& data, std::string version);

  /// Advances as if `change` were written by `by`, of which `done` is written already. Adds the blobs to write before, and the names of
  /// those that are not needed afterwards.
  boost::json::object write(const Change& change, const KubernetesWriter& by, const KubernetesProgress& done,
                            std::vector<KubernetesBlob>& before, std::vector<std::string>& unneeded);

 private:
  void add_history(const Change& change, const std::string& group, size_t from, std::vector<KubernetesBlob>& before,
                   std::vector<std::string>& unneeded);
  void add_verdicts(const Change& change, const std::string& group, size_t from, std::vector<KubernetesBlob>& before,
                    std::vector<std::string>& unneeded);
};

/// The name of an object: readable, valid and different for different keys.
std::string object_name(std::string_view type, std::string_view readable, std::string_view key);
/// The entries of a blob of type "audit".
Result<std::vector<HistoryEntry>> read_page(std::string_view data);

}  // namespace serin::store
