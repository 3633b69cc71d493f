// replicated_store.h: The store of a router among several: the shared store, with a local copy on disk for a start while it is unreachable.
#pragma once

#include <memory>

#include "router/store/shared_store.h"
#include "router/store/store.h"

namespace serin::store {

/// A shared change is written to both, the shared store first, and fails if that fails; any other change goes to the copy alone. The audit
/// log and verdicts are read from the shared store, or from the copy if that does not answer. Followers of the audit log read the copy: the
/// leader's is complete.
std::unique_ptr<Store> make_replicated_store(std::unique_ptr<Store> copy, SharedStore& shared);

}  // namespace serin::store
