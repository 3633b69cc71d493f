// etcd_state.h: what the state key of a service holds beside the record itself: how far the audit log and the verdicts have come, so that they can be
// gone on with by whoever leads next.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <map>
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

struct EtcdState {
  int64_t revision = 0;  ///< of the key; 0: it is not there
  int64_t entries = 0;   ///< of the audit log, ever
  std::string digest;    ///< of the last one
  std::string rollout;   ///< id
  std::vector<std::string> verdicts;
  std::string mark;  ///< of the attempt that wrote it
  std::map<std::string, EtcdProgress>
      attempts;  ///< by mark: those since the last that is known to be done, and how far each would have come

  static EtcdState read(const KeyValue& kv);
  /// What a transaction writes of `change`, as much as fits, in an attempt of that mark; this and `progress` move on as if it were done.
  boost::json::array write(const Change& change, const EtcdKeys& keys, const std::string& mark, EtcdProgress& progress);

 private:
  void write_news(const Change& change, const EtcdKeys& keys, EtcdProgress& progress, boost::json::array& then);
};

}  // namespace serin::store
