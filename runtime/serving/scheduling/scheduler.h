// scheduler.h: the interface that runs the requests of a version: the engine's batcher, the steps of an ensemble, the slots of sequences.
//
// The APIs know only a Version (version.h), which uses a scheduler. Schedulers in turn use other schedulers: an ensemble's steps run
// through the versions of its members.
#pragma once

#include "runtime/serving/scheduling/job.h"

namespace serin::serving {

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// Takes a job whose inputs were checked against the signature and whose rows were counted. From then on its `done` is called, unless it
  /// is abandoned. On an error the job was not taken, and `done` is never called. kOverloaded: the queue is full.
  virtual Status submit(JobPtr job) = 0;
  /// The client of this job, which is marked as abandoned, no longer waits. A queued job is released at once, with its inputs; a running
  /// job continues. Call it from any thread, without a lock. An unknown job is no error: no queue takes an abandoned job.
  virtual void withdraw(const JobPtr& job) = 0;
  /// Seconds until a refused request has a chance, for Retry-After: at least 1.
  virtual int64_t retry_after_seconds() const = 0;
  /// Nothing is queued, and nothing runs.
  virtual bool idle() const = 0;
  /// kUnavailable, with the reason, if it cannot answer any longer.
  virtual Status usable() const = 0;
};

}  // namespace serin::serving
