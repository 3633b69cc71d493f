// fleet_kubernetes.h: the nodes of a fleet from what `kubectl get nodes,pods -A -o json` prints.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/planner/catalogue.h"
#include "runtime/planner/fleet.h"

namespace serin::planner {

/// Whether a text is a list of Kubernetes objects: JSON with "kind": "List".
bool is_kubernetes_list(std::string_view text);

/// Adds the nodes that take pods, less the resources that pods have requested. A card that a pod has requested is in use as a whole. Notes
/// name everything that is left out: nodes that take no pods, cards that the catalogue lacks, cards that are shared by time.
///
/// Requests count as for the scheduler: those of containers, of init containers where these need more, and the overhead. `name`: of the file,
/// for messages. kInvalidArgument: the text is no such list, or has no nodes; a quantity is none.
Status read_kubernetes(std::string_view text, const std::string& name, const Catalogue& catalogue, Fleet& fleet);

/// "1500m", "16Gi", "1e3": a quantity of Kubernetes. Nothing: it is none, or negative.
std::optional<double> kubernetes_quantity(std::string_view text);

}  // namespace serin::planner
