// etcd_state.h: The content of a service's state key in addition to the record: the progress of the audit log and the verdicts.
//
// The next leader continues from there.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "router/store/etcd_messages.h"
#include "router/store/store.h"

namespace serin::store {

/// Keys (etcd_store.h has the list).
struct EtcdKeys {
  std::string prefix;

  std::string live(std::string_view rest) const;
  std::string state(const std::string& service) const;
  std::string trip(const std::string& service, const std::string& rollout) const;
  std::string audit(const std::string& service, int64_t number) const;
  std::string verdict(const std::string& id) const;
};

/// How much of a change's history and verdicts is written.
struct EtcdProgress {
  size_t entries = 0, verdicts = 0;
};

/// Part of the state: the run of a router that wrote it, and its progress. With it a router recognises its own write without a
/// confirmation.
struct EtcdMark {
  std::string writer;
  EtcdProgress progress;
};

struct EtcdState {
  int64_t revision = 0;  ///< of the key; 0: it does not exist
  int64_t entries = 0;   ///< of the audit log, in total
  std::string digest;    ///< of the last one
  std::string rollout;   ///< id
  std::vector<std::string> verdicts;
  EtcdMark mark;

  static EtcdState read(const KeyValue& kv);
  /// The part of `change` that a transaction of `writer` writes, as much as fits; this and `progress` advance as if it were done.
  boost::json::array write(const Change& change, const EtcdKeys& keys, const std::string& writer, EtcdProgress& progress);

 private:
  void write_news(const Change& change, const EtcdKeys& keys, EtcdProgress& progress, boost::json::array& then);
};

}  // namespace serin::store
