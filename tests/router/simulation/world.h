// world.h: one router with one service on a clock that only the test moves, over a store in memory that fails when told to. The controller's own
// code decides everything (router/control/services.h); a crash drops it at any moment, between deciding and writing and between writing and applying too.
//
//   World world(spec_lines, seed);
//   world.start();  world.traffic(100);  world.crash(); ...
//   world.check();            // what must hold after every step; a violation is in world.broken
#pragma once

#include <unistd.h>

#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "router/control/services.h"
#include "router/rollout/draw.h"
#include "tests/router/rollout/simulation.h"
#include "tests/router/store/test_folder.h"

namespace serin::router {

/// Where the page of weights lies: in memory where the machine has a file system there, because it is made anew at every start.
struct Folder {
  TestFolder on_disk;
  std::string page =
      std::filesystem::exists("/dev/shm") ? "/dev/shm/serin-simulation-" + std::to_string(::getpid()) : on_disk.file("weights");
  Folder() = default;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove(page); }
};

/// Thrown by the store where the process is to die.
struct Crash {};

class MemoryStore : public store::Store {
 public:
  Result<std::vector<store::ServiceRecord>> load() override { return records; }
  Status save(const store::Change& change) override;
  Result<std::vector<store::HistoryEntry>> history(const std::string&, size_t) override { return std::vector<store::HistoryEntry>(); }
  Result<std::vector<store::HistoryEntry>> history_after(int64_t, size_t) override { return std::vector<store::HistoryEntry>(); }
  Result<std::optional<std::string>> note(const std::string&) override { return std::optional<std::string>(); }
  Status set_note(const std::string&, const std::string&) override { return {}; }
  Result<std::optional<store::VerdictEntry>> verdict(const std::string&) override { return std::optional<store::VerdictEntry>(); }

  std::vector<store::ServiceRecord> records;
  bool failing = false;
  enum class Dies : uint8_t { kNo, kBeforeWriting, kAfterWriting } dies = Dies::kNo;  // at the next save
};

class World {
 public:
  World(std::string spec, const std::string& page_path, uint64_t seed);

  // What people, clients, time and fate do. Each returns whether it had an effect.
  bool start();
  bool command(std::string_view verb, uint32_t weight_ppm = 0);
  /// Requests, drawn now and answered now (the data path's code draws them).
  void traffic(int requests, double stable_bad, double canary_bad, bool canary_silent = false);
  /// So many requests are drawn now; what becomes of them is known when resolve() is called, whatever has happened meanwhile.
  void begin_requests(int requests, bool bad);
  void resolve();
  void tick(rollout::Time::duration time);
  void save();
  void crash();
  void lose_page();

  /// Broken rules, in words; empty: none.
  std::string broken;
  void check();
  /// All that decides what happens next: two worlds with the same fingerprint go on alike.
  std::string fingerprint() const;

  MemoryStore store;
  ServiceControl& control() { return *services_->all[0]; }
  Split split() const { return services_->all[0]->split(); }
  ServiceStatus status() const { return services_->all[0]->status(now_); }
  rollout::Random random;
  uint64_t canary_answers = 0;

 private:
  void open();
  void deliver(const Split& split, const rollout::Draw& draw, bool bad, bool silent);
  void blame(const std::string& what);
  const store::RolloutRecord* durable_rollout() const;

  const std::string spec_;
  const std::string page_path_;
  RouterConfig config_;
  metrics::Registry metrics_;
  rollout::Time now_{};
  std::unique_ptr<Services> services_;
  uint64_t batches_ = 0;

  struct Pending {
    Split split;
    rollout::Draw draw;
    bool bad;
  };
  std::deque<Pending> pending_;

  // What was seen at the last check.
  Split seen_;
  uint64_t seen_epoch_ = 0;
  std::set<std::string> over_;  // rollouts that were seen rolled back
  bool restarted_ = false;
};

}  // namespace serin::router
