// release_run.h: the stages of a release, in order, each so that it may be done again.
//
// Before a stage changes what others see, the journal says so; after it, the journal names the next stage. A run that finds a journal goes on
// there, whatever became of the process before. A stop is written down first as well, so that a kill while everything is taken back is no
// different from one before.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/cli/release/candidate.h"
#include "runtime/cli/release/journal.h"
#include "runtime/cli/release/policy.h"
#include "runtime/cli/release/records.h"
#include "runtime/cli/release/release_options.h"
#include "runtime/cli/release/router_side.h"
#include "runtime/cli/release/timeline.h"
#include "runtime/registry/registry.h"

namespace serin::cli {

/// The state of the registry and the router before a release begins.
struct Survey {
  registry::Version production;
  std::string stable, idle;                   ///< slots
  std::optional<registry::Version> idle_has;  ///< the version that has its tag
};

/// kFailedPrecondition: the two do not agree; the message says what to do. Throws a Failure.
Result<Survey> survey(const registry::Registry& registry, const std::string& model, const ReleasePolicy& policy, const RouterSide& router);

class ReleaseRun {
 public:
  /// `folder`: of the service's releases.
  ReleaseRun(const ReleaseOptions& options, ReleasePolicy policy, std::string folder, Journal journal, Timeline& timeline)
      : options_(options),
        policy_(std::move(policy)),
        folder_(std::move(folder)),
        journal_(std::move(journal)),
        timeline_(timeline),
        registry_(policy_.registry),
        router_(options.admin, journal_.service) {}

  /// Does the stages from the journal's on. `candidate`: null if the journal is past kRegister, or is stopped. Errors end the run and leave
  /// the journal. Throws a Failure or ReleaseInterrupted, with the same effect.
  Result<ReleaseRecord> run(const Candidate* candidate);
  /// Ends what another process has begun: completes it if its rollout was promoted, else takes it back for `reason`.
  Result<ReleaseRecord> finish(const std::string& reason);

 private:
  struct Done {
    bool good = false;
    std::string text;
    std::string stage = {};    ///< where it was stopped, if not in the stage's own name
    std::string outcome = {};  ///< of a stop
  };
  Result<Done> do_stage(const Candidate* candidate);
  Result<Done> check(const Candidate& candidate);
  Result<Done> plan(const Candidate& candidate);
  Result<Done> evaluate(const Candidate& candidate);
  Result<Done> add(const Candidate& candidate);
  Result<Done> load();
  Result<Done> roll_out();
  Result<Done> tag();
  Result<ReleaseRecord> record();

  Result<std::optional<Done>> begin_rollout();
  Result<Done> follow_rollout();
  Status take_back();
  std::string running_rollout() const;
  Result<std::string> pulled(uint64_t version);
  Result<boost::json::object> predicate();
  Status save() const { return write_journal(folder_ + "/journal.json", journal_); }
  std::string work() const { return folder_ + "/work"; }
  std::string document() const;

  const ReleaseOptions& options_;
  ReleasePolicy policy_;
  std::string folder_;
  Journal journal_;
  Timeline& timeline_;
  registry::Registry registry_;
  RouterSide router_;
};

}  // namespace serin::cli
