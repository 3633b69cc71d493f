#include "runtime/net/message/whole_body.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace serin::net {
namespace {

/// Collects a body in reads of `piece` bytes; the sizes of the memory that it had on the way.
std::set<size_t> sizes_of_memory(size_t whole, bool announced, size_t piece) {
  WholeBody body;
  body.begin({});
  std::set<size_t> sizes;
  const std::string_view text = "0123456789";
  while (body.size() < whole) {
    const auto room = body.room(announced ? std::optional<uint64_t>(whole - body.size()) : std::nullopt);
    const size_t bytes = std::min({piece, room.size(), whole - body.size()});
    for (size_t i = 0; i < bytes; ++i) room[i] = text[(body.size() + i) % text.size()];
    body.filled(bytes);
    sizes.insert(body.capacity());
  }
  const std::string all = body.take();
  EXPECT_EQ(all.size(), whole);
  for (size_t i = 0; i < whole; i += 997) EXPECT_EQ(all[i], text[i % text.size()]);
  return sizes;
}

TEST(WholeBody, MovesAnAnnouncedBodyAtMostTwice) {
  for (const size_t piece : {size_t{1000}, size_t{64} << 10, size_t{1} << 20}) {
    const std::set<size_t> sizes = sizes_of_memory(size_t{9} << 20, /*announced=*/true, piece);
    EXPECT_LE(sizes.size(), 3U);
    EXPECT_LT(*sizes.rbegin(), (size_t{9} << 20) + (size_t{512} << 10));  // and little is left over
  }
}

TEST(WholeBody, CollectsABodyWithoutALength) { EXPECT_GT(sizes_of_memory(3 << 20, /*announced=*/false, 5000).size(), 3U); }

TEST(WholeBody, ReservesLittleForAPromise) {
  WholeBody body;
  body.begin({});
  EXPECT_LE(body.room(uint64_t{1} << 40).size(), size_t{64} << 10);
  EXPECT_LE(body.capacity(), size_t{2} << 20);  // of a terabyte that no byte of has come
  body.filled(64 << 10);
  body.room((uint64_t{1} << 40) - (64 << 10));
  EXPECT_LE(body.capacity(), size_t{2} << 20);
}

}  // namespace
}  // namespace serin::net
