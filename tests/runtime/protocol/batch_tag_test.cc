// batch_tag_test.cc: the header that every answer carries.

#include <gtest/gtest.h>

#include "runtime/protocol/tensor/datatype.h"

namespace serin::protocol {
namespace {

TEST(BatchTag, RoundTrips) {
  const auto tag = parse_batch_tag(print_batch_tag({0xabcdef0123456789, 42, 3, 8}));
  ASSERT_TRUE(tag);
  EXPECT_EQ(tag->boot, 0xabcdef0123456789u);
  EXPECT_EQ(tag->seq, 42u);
  EXPECT_EQ(tag->i, 3u);
  EXPECT_EQ(tag->n, 8u);
}

TEST(BatchTag, WhatIsNotOneIsRefused) {
  for (const char* wrong : {"", "1", "1-2", "1-2/3", "1-2/3/3", "1-2/0/0", "1-2/0/1x", "x-2/0/1", "1-2/-1/1", "1-99999999999999999999/0/1"})
    EXPECT_FALSE(parse_batch_tag(wrong)) << wrong;
}

TEST(Datatype, EveryNameReadsBack) {
  for (int d = static_cast<int>(DType::kBool); d <= static_cast<int>(DType::kString); ++d)
    EXPECT_EQ(parse_oip_datatype(oip_datatype(static_cast<DType>(d))), static_cast<DType>(d));
  EXPECT_FALSE(parse_oip_datatype("fp32"));
}

}  // namespace
}  // namespace serin::protocol
