// deployment.h: an offer as something that starts: a Deployment with its autoscaler for Kubernetes, or a line for Docker.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/planner/offers.h"

namespace serin::planner {

struct Deployment {
  std::string name;   ///< of the model
  std::string place;  ///< the file or folder that `plan` was given
  std::string image;  ///< empty: serin:VERSION, for cards serin:cuda
  std::optional<int> most_replicas;
};

/// kInvalidArgument: it has no tag or digest, or its tag is `latest`, so that pods may start different programs.
Status check_image(const std::string& image);

/// The image of this version for the place of the offer, where none is named.
std::string usual_image(const Offer& offer);
/// The limit of a container: the plan, and the part that the policy keeps free.
size_t limit_mebibytes(const Offer& offer, double memory_threshold);
/// The card or slice as Kubernetes counts it: "nvidia.com/mig-1g.5gb"; empty on the CPU.
std::string accelerator_of(const Offer& offer);

/// A Deployment and, where a load was named, a HorizontalPodAutoscaler by serin_model_in_flight_requests. The models lie on the claim
/// `models`, as in deploy/kubernetes.
std::string kubernetes_text(const Deployment& deployment, const Offers& offers);
/// One line of a shell. It binds the model's folder.
std::string docker_text(const Deployment& deployment, const Offers& offers);

}  // namespace serin::planner
