// replicated_store.h: the store of a router among several: what is shared lies in the shared store, and this router's own copy on its disk, from which
// it begins where the shared one cannot be reached.
#pragma once

#include <memory>

#include "router/store/shared_store.h"
#include "router/store/store.h"

namespace serin::store {

/// A shared change is written to both, the shared store first, and has failed where that has; any other to the copy alone. The audit log and verdicts
/// are read from the shared store, from the copy where that does not answer. Followers of the audit log read the copy: the leader's is complete.
std::unique_ptr<Store> make_replicated_store(std::unique_ptr<Store> copy, SharedStore& shared);

}  // namespace serin::store
