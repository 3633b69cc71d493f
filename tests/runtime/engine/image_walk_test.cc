// Copies of images, element by element: what walk_channels_last() finds in [n, h, w, c] is what the copy finds in [n, c, h, w].

#include "runtime/engine/layout/image_walk.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kernels/indexing.h"

namespace serin::engine {
namespace {

std::vector<int64_t> copied(const std::vector<int64_t>& from, int64_t offset, const std::vector<int64_t>& strides, const Shape& y) {
  kernels::Strides by_axis{};
  std::copy(strides.begin(), strides.end(), by_axis.begin());
  std::vector<int64_t> result(static_cast<size_t>(y.elements()));
  kernels::for_each<1>(y, {by_axis},
                       [&](int64_t i, const auto& at) { result[static_cast<size_t>(i)] = from[static_cast<size_t>(offset + at[0])]; });
  return result;
}

void expect_same(const Shape& image, const kernels::StridedCopy& copy, const Shape& y, bool found = true) {
  std::vector<int64_t> plain(static_cast<size_t>(image.elements()));
  std::iota(plain.begin(), plain.end(), 0);
  const auto last =
      copied(plain, 0, {image[1] * image[2] * image[3], image[3], 1, image[2] * image[3]}, {image[0], image[2], image[3], image[1]});
  const auto walk = walk_channels_last(image, copy, y);
  ASSERT_EQ(walk.has_value(), found) << image.str() << " to " << y.str();
  if (!found) return;
  EXPECT_EQ(copied(last, walk->offset, walk->strides, y), copied(plain, copy.offset, copy.strides, y)) << image.str() << " to " << y.str();
}

TEST(ImageWalk, FindsEveryPermutationOfEveryImage) {
  for (const Shape& image : {Shape{2, 3, 4, 5}, Shape{1, 6, 1, 5}, Shape{3, 1, 2, 2}, Shape{2, 4, 3, 1}, Shape{1, 1, 1, 1}}) {
    const kernels::Strides dense = kernels::row_major_strides(image);
    std::array<size_t, 4> order = {0, 1, 2, 3};
    do {
      kernels::StridedCopy copy;
      Shape y;
      for (const size_t axis : order) y.push_back(image[axis]), copy.strides.push_back(dense[axis]);
      expect_same(image, copy, y);
    } while (std::ranges::next_permutation(order).found);
  }
}

TEST(ImageWalk, FindsSlicesPartsAndRepeats) {
  const Shape image{2, 6, 4, 8};
  expect_same(image, {2 * 32 + 8 + 3, {192, 64, 16, 2}}, {2, 2, 2, 3});  // every second channel, row and column, from some on
  expect_same(image, {0, {192, 96, 32, 8, 1}}, {2, 2, 3, 4, 8});         // groups of channels
  expect_same(image, {0, {192, 32, 16, 8, 2, 1}}, {2, 6, 2, 2, 4, 2});   // blocks of pixels
  expect_same(image, {0, {192, 0, 32, 8, 0, 1}}, {2, 3, 6, 4, 2, 8});    // repeated
  expect_same(image, {0, {192, 1, 32}}, {2, 32, 6});                     // tokens: rows and columns as one
  expect_same(image, {32 + 8, {192, 32, 1}}, {2, 5, 24});
}

TEST(ImageWalk, FindsNothingWhereAnAxisHasNoStride) {
  const Shape image{2, 6, 4, 8};
  expect_same(image, {0, {192, 1}}, {2, 192}, false);          // channels and pixels as one
  expect_same(image, {0, {192, 16}}, {2, 12}, false);          // halves of channels as one
  expect_same(image, {31, {192, 32, -1}}, {2, 6, 32}, false);  // backwards
}

}  // namespace
}  // namespace serin::engine
