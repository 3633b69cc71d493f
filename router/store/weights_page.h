// weights_page.h: The split word of every service, in a memory page that is also a file.
//
//   auto found = WeightsPage::read(path, "digits");                        // from the last run, however it ended
//   SERIN_TRY(WeightsPage page, WeightsPage::create(path, slots));         // replaces the file in one step
//   page.word(0).load();                                                   // the data path: one atomic load for each request
//   page.store(0, word, epoch, "err", "err: 7 of 9 ...");                  // a rollback: one atomic store, survives kill -9
//
// The file is not flushed to disk: it must survive the process, not the machine. Its content after a crash of the machine can only lower a
// weight, because the smaller value of page and database applies (restore.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::store {

inline constexpr size_t kMaxVersions = 63;

class WeightsPage {
 public:
  struct Slot {
    std::string service;
    std::vector<std::string> versions;  ///< in the order of the indices in the word; at most kMaxVersions
    uint64_t word = 0, epoch = 0;
  };
  /// A slot from an earlier run. Names are digests (digest.h), because indices have no meaning once the configuration changed.
  struct Found {
    uint64_t word = 0, epoch = 0;
    std::vector<uint64_t> versions;
    std::string cause, reason;  ///< of the last verdict; empty if there was none
  };

  /// Nothing: no page, not a Serin page, damaged, or without the service.
  static std::optional<Found> read(const std::string& path, std::string_view service);
  static Result<WeightsPage> create(const std::string& path, std::span<const Slot> slots);

  WeightsPage(WeightsPage&& other) noexcept;
  WeightsPage& operator=(WeightsPage&& other) noexcept;
  ~WeightsPage();

  const std::atomic<uint64_t>& word(size_t slot) const;
  /// One writer for each slot at a time. Cause and reason are cut to fit.
  void store(size_t slot, uint64_t word, uint64_t epoch, std::string_view cause = {}, std::string_view reason = {});

 private:
  WeightsPage(void* memory, size_t bytes) : memory_(memory), bytes_(bytes) {}
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace serin::store
