// scheduler.h: what runs the requests of a version: the engine's instances behind a batcher, the steps of an ensemble, the slots of sequences.
//
// A Version (version.h) stands in front of one and is all that the doors know. Schedulers stand in front of each other in turn: an ensemble's steps go
// through the versions of its members.
#pragma once

#include "runtime/serving/scheduling/job.h"

namespace serin::serving {

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// Takes a job whose inputs were checked against the signature, and whose rows were counted. From then on its `done` is called, unless it is abandoned.
  /// An error: it was not taken, and `done` never is. kOverloaded: the queue is full.
  virtual Status submit(JobPtr job) = 0;
  /// Nobody waits for this job any more, which it says already: where it waits it is let go of at once, and with it its inputs. What runs already runs on. From
  /// any thread, with no lock held; a job that is not here, or not yet, is no mistake: one that is given up is taken by no queue.
  virtual void withdraw(const JobPtr& job) = 0;
  /// Seconds until a request refused now has a chance, for Retry-After: at least 1.
  virtual int64_t retry_after_seconds() const = 0;
  /// Nothing queued and nothing running.
  virtual bool idle() const = 0;
  /// kUnavailable, and why, where nothing can be answered any more.
  virtual Status usable() const = 0;
};

}  // namespace serin::serving
