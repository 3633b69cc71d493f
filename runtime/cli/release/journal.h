// journal.h: where a release is, in one small file, so that a run after kill -9 goes on where the one before was.
//
// The file is replaced in one step, before and after everything that others can see. It has what was decided: the registry and the router say
// again what was done.
#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>

#include "runtime/base/result.h"

namespace serin::cli {

enum class Stage : uint8_t { kCheck, kPlan, kEval, kRegister, kLoad, kRollout, kTag, kRecord };

struct Stop {
  std::string stage;    ///< as users see it: "eval", "shadow", "canary"
  std::string reason;   ///< a sentence
  std::string outcome;  ///< "refused": before anything was loaded; "failed": it could not be loaded; "rolled_back"; "superseded"
};

struct Journal {
  std::string id, service, model, content, started, by;
  Stage stage = Stage::kCheck;  ///< to be done next
  bool again = false;
  std::string given;        ///< the model as the user named it
  std::string revision;     ///< of the rollout
  uint64_t version = 0;     ///< 0: not registered
  uint64_t production = 0;  ///< the version that it is compared with
  std::string production_content;
  std::string slot;          ///< that it is loaded into; empty: not yet
  uint64_t slot_before = 0;  ///< version that had the slot
  std::string rollout;       ///< ID; empty: not begun
  std::optional<Stop> stop;
  boost::json::object facts;    ///< of each stage, for the record
  boost::json::array timeline;  ///< {"at", "stage", "text"}

  void say(std::string_view stage, std::string_view text);
};

/// kNotFound: there is none. kCorrupt: the file is no journal.
Result<Journal> read_journal(const std::string& path);
Status write_journal(const std::string& path, const Journal& journal);

}  // namespace serin::cli
