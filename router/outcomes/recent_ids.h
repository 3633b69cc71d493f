// recent_ids.h: The latest million different IDs, so that a report that comes twice counts once. IDs of users are never forgotten: what a user
// was drawn for does not change, so a second report would be no second draw.
//
//   if (ids.add(id) == RecentIds::Added::kKnown) return;
//   for (uint64_t c = saved; c < ids.full_chunks(); ++c) write(slot_of(c), ids.chunk(c));
//   write("rest", ids.total(), ids.chunk(ids.full_chunks()));
//
// They are written in chunks of a thousand, of which a full one never changes: what is written every few seconds is small.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace serin::router {

class RecentIds {
 public:
  static constexpr uint64_t kChunk = 1000, kChunks = 1000;

  enum class Added : uint8_t {
    kNew,
    kKnown,
    kNoRoom,  ///< it would take the place of a user's
  };
  Added add(uint64_t id);
  static uint64_t of_user(uint64_t id) { return id | 1; }
  static uint64_t of_request(uint64_t id) { return id & ~uint64_t{1}; }
  uint64_t total() const { return total_; }  ///< ever added
  uint64_t full_chunks() const { return total_ / kChunk; }
  /// The oldest one whose IDs are all there.
  uint64_t first_chunk() const { return full_chunks() > kChunks - 1 ? full_chunks() - (kChunks - 1) : 0; }
  /// The IDs of a chunk from first_chunk() on, as hexadecimal digits; of the last one those that are there.
  std::string chunk(uint64_t number) const;
  /// Chunk `number` is at this place of the file, where it replaces an older one.
  static uint64_t slot_of(uint64_t number) { return number % kChunks; }

  /// As they were when `total` had been added. Follow it by restore_chunk() for the chunks that are known.
  void restore(uint64_t total);
  /// False: `digits` are not those of a chunk.
  bool restore_chunk(uint64_t number, std::string_view digits);

 private:
  std::vector<uint64_t> ring_;  // the ID with number n is at n % size; 0: none
  std::unordered_set<uint64_t> known_;
  uint64_t total_ = 0;
};

}  // namespace serin::router
