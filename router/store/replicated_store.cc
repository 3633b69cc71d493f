#include "router/store/replicated_store.h"

#include "runtime/base/log.h"

namespace serin::store {
namespace {

class ReplicatedStore final : public Store {
 public:
  ReplicatedStore(std::unique_ptr<Store> copy, SharedStore& shared) : copy_(std::move(copy)), shared_(shared) {}

  Result<std::vector<ServiceRecord>> load() override { return copy_->load(); }

  Status save(const Change& change) override {
    if (!change.shared) return copy_->save(change);
    SERIN_CHECK(shared_.save(change));
    // It is agreed on: a full disk here is no reason to stop the others, only to say so.
    if (const Status kept = copy_->save(change); !kept) log::error("the copy of the shared state on this disk: {}", kept.error().message);
    return {};
  }

  Result<std::vector<HistoryEntry>> history(const std::string& service, size_t limit) override {
    auto shared = shared_.history(service, limit);
    return shared ? std::move(shared) : copy_->history(service, limit);
  }
  Result<std::optional<VerdictEntry>> verdict(const std::string& id) override {
    auto shared = shared_.verdict(id);
    return shared && *shared ? std::move(shared) : copy_->verdict(id);
  }
  Result<std::vector<HistoryEntry>> history_after(int64_t id, size_t limit) override { return copy_->history_after(id, limit); }
  Result<std::optional<std::string>> note(const std::string& name) override { return copy_->note(name); }
  Status set_note(const std::string& name, const std::string& text) override { return copy_->set_note(name, text); }

 private:
  const std::unique_ptr<Store> copy_;
  SharedStore& shared_;
};

}  // namespace

std::unique_ptr<Store> make_replicated_store(std::unique_ptr<Store> copy, SharedStore& shared) {
  return std::make_unique<ReplicatedStore>(std::move(copy), shared);
}

}  // namespace serin::store
