// rollout_objects.h: Objects of the kind Rollout (serin.dev/v1): the leader starts what is applied, and writes back what becomes of it.
//
//   kubectl apply -f rollout.yaml      -> Controller::apply(): starts it once
//   kubectl get rollouts               <- status: phase, weight, evidence, conditions (object_status.h)
//   kubectl delete rollout NAME        -> its rollout is rolled back, if it runs
//
// A rollout is never started twice for the same canary and the same annotation serin.dev/revision, however often the object is applied,
// deleted and applied again. Tools that write the same objects again and again therefore never bring a canary back that was rolled back.
#pragma once

#include <memory>
#include <string>

#include "router/config/config.h"
#include "router/control/controller.h"
#include "router/kubernetes/api_client.h"

namespace serin::router {

class RolloutObjects {
 public:
  /// All must outlive this. It has a thread, and does nothing while this router does not lead.
  /// `group`: objects with another one in their label serin.dev/routers are left to other routers.
  RolloutObjects(const kubernetes::Cluster& cluster, std::string group, const RouterConfig& config, Controller& controller);
  ~RolloutObjects();

  /// Something was saved: the status may have changed.
  void wake();
  /// Ends the thread, so that no command follows.
  void end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace serin::router
