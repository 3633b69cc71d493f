#include "runtime/serving/scheduling/job.h"

namespace serin::serving {

void Job::clear() {
  inputs.clear();
  protocol::trim(memory, texts);
  share.release();
  holds = nullptr;
  rows = 1;
  sizes.clear();
  padded.clear();
  group.clear();
  arrived = {};
  deadline = Clock::time_point::max();
  patience = {};
  priority = 0;
  admitted = false;
  behind = 0;
  sequence.clear();
  loop = nullptr;
  parent = nullptr;
  trace = 0;
  shadow = false;
  pending.end();
  place = {};
  inputs_hash = 0;
  abandoned = false;
  done = nullptr;
}

JobPtr part_of(const JobPtr& request) {
  auto part = std::make_shared<Job>();
  part->arrived = Clock::now();
  part->deadline = request->deadline;
  part->priority = request->priority;
  part->shadow = request->shadow;
  part->loop = request->loop;
  part->parent = request;
  return part;
}

}  // namespace serin::serving
