// Sparse tensors, hashes and crossed features: answers are those of TensorFlow 2.21. And indices and shapes that contradict each other.

#include <numeric>

#include "kernels/ref/fingerprint.h"
#include "tests/kernels/sized_run.h"

namespace serin::kernels::ref {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Integers = std::vector<int64_t>;

TEST(Fingerprint, IsThatOfTensorFlow) {
  using namespace std::string_view_literals;
  constexpr std::string_view kText =
      "The quick brown fox jumps over the lazy dog, and then it runs all the way back to its den in the hills, where nobody waits; "
      "\xff\x00 it sleeps."sv;
  const std::pair<size_t, uint64_t> expected[] = {{0, 1936946117179621456},   {1, 1366698271136253306},   {3, 398699863598724094},
                                                  {4, 8425543508670559910},   {7, 8879765114474867592},   {8, 5102859526078303239},
                                                  {16, 4320848957565769301},  {17, 5162019803258432958},  {32, 3916272259504149091},
                                                  {33, 8241563171161551831},  {64, 8286096234605832336},  {65, 3261157029083560371},
                                                  {128, 4295606031700299815}, {129, 7406982512995694199}, {137, 5613566867973823751}};
  ASSERT_EQ(kText.size(), 137U);
  for (const auto& [size, hash] : expected) EXPECT_EQ(fingerprint64(kText.substr(0, size)) % INT64_MAX, hash) << size;
}

TEST(HashBucket, RefusesNoBuckets) {
  const auto run = [](int64_t buckets) {
    return SizedRun("HashBucket", with_attributes({{"buckets", buckets}}), {texts({2}, {"", "T"})}, {{DType::kInt64, {2}}});
  };
  EXPECT_THAT(run(INT64_MAX).outputs[0].as<int64_t>(), ElementsAre(1936946117179621456, 1366698271136253306));
  EXPECT_THAT(run(0).problem, HasSubstr("0 buckets"));
}

SizedRun cross(std::vector<Held> inputs, int64_t sparse, int64_t buckets = 0) {
  return {"SparseCross",
          with_attributes({{"sparse", sparse}, {"buckets", buckets}, {"key", int64_t{0xDECAFCAFFE}}}),
          std::move(inputs),
          {{DType::kInt64, {0, 2}, false}, {DType::kInt64, {0}, false}, {DType::kInt64, {2}}}};
}

TEST(SparseCross, CombinesTheValuesOfEachRow) {
  const std::vector<Held> texts_of = {tensor<int64_t>({4, 2}, {0, 0, 0, 1, 1, 0, 2, 0}), texts({4}, {"a", "b", "c", "d"}),
                                      tensor<int64_t>({2}, {3, 2})};
  std::vector<Held> both = texts_of;
  for (Held& each :
       std::vector<Held>{tensor<int64_t>({3, 2}, {0, 0, 0, 1, 2, 0}), tensor<int64_t>({3}, {1, 2, 7}), tensor<int64_t>({2}, {3, 2})})
    both.push_back(each);
  const SizedRun plain = cross(both, 2);
  ASSERT_THAT(plain.problem, IsEmpty());
  EXPECT_THAT(plain.outputs[0].as<int64_t>(), ElementsAre(0, 0, 0, 1, 0, 2, 0, 3, 2, 0));
  EXPECT_THAT(plain.outputs[1].as<int64_t>(),
              ElementsAre(2928842892298887678, 7560904255693475987, 5354134812324246176, 85918459618309357, 2659852172674357001));
  EXPECT_THAT(plain.outputs[2].as<int64_t>(), ElementsAre(3, 4));
  EXPECT_THAT(cross(both, 2, 100).outputs[1].as<int64_t>(), ElementsAre(85, 87, 83, 57, 8));
  std::vector<Held> dense = texts_of;
  dense.push_back(texts({3, 2}, {"x", "y", "z", "x", "", ""}));
  const SizedRun mixed = cross(dense, 1, 100);
  ASSERT_THAT(mixed.problem, IsEmpty());
  EXPECT_THAT(mixed.outputs[1].as<int64_t>(), ElementsAre(92, 47, 4, 5, 80, 53, 42, 42));
}

TEST(SparseCross, RefusesIndicesThatContradictTheShape) {
  const auto problem = [](const Integers& indices, int64_t rows) {
    return cross({tensor<int64_t>({2, 2}, indices), texts({2}, {"a", "b"}), tensor<int64_t>({2}, {rows, 2})}, 1).problem;
  };
  EXPECT_THAT(problem({0, 0, 1, 0}, 2), IsEmpty());
  EXPECT_THAT(problem({1, 0, 0, 0}, 2), HasSubstr("out of order"));
  EXPECT_THAT(problem({0, 0, 2, 0}, 2), HasSubstr("beyond the rows"));
  EXPECT_THAT(problem({-1, 0, 0, 0}, 2), HasSubstr("out of order"));
  EXPECT_THAT(problem({0, 0, 0, 0}, -1), HasSubstr("-1 rows"));
  EXPECT_THAT(problem({0, 0, 0, 0}, INT64_MAX), HasSubstr("rows"));
}

SizedRun fill(const Integers& indices, int64_t rows) {
  const auto values = static_cast<int64_t>(indices.size()) / 2;
  std::vector<int32_t> numbers(static_cast<size_t>(values));
  std::iota(numbers.begin(), numbers.end(), 7);
  return {"FillEmptyRows",
          {},
          {tensor<int64_t>({values, 2}, indices), tensor<int32_t>({values}, numbers), tensor<int64_t>({2}, {rows, 2}),
           tensor<int32_t>({}, {-1})},
          {{DType::kInt64, {0, 2}, false}, {DType::kInt32, {0}, false}, {DType::kBool, {0}, false}, {DType::kInt64, {values}}}};
}

TEST(FillEmptyRows, PutsADefaultIntoEachEmptyRow) {
  const SizedRun run = fill({3, 1, 1, 0, 3, 0}, 5);
  ASSERT_THAT(run.problem, IsEmpty());
  EXPECT_THAT(run.outputs[0].as<int64_t>(), ElementsAre(0, 0, 1, 0, 2, 0, 3, 1, 3, 0, 4, 0));
  EXPECT_THAT(run.outputs[1].as<int32_t>(), ElementsAre(-1, 8, -1, 7, 9, -1));
  EXPECT_THAT(run.outputs[2].as<bool>(), ElementsAre(true, false, true, false, true));
  EXPECT_THAT(run.outputs[3].as<int64_t>(), ElementsAre(3, 1, 4));
  EXPECT_THAT(fill({}, 0).outputs[0].as<int64_t>(), IsEmpty());
}

TEST(FillEmptyRows, RefusesRowsThatAreNotThere) {
  EXPECT_THAT(fill({2, 0}, 2).problem, HasSubstr("row 2"));
  EXPECT_THAT(fill({-1, 0}, 2).problem, HasSubstr("row -1"));
  EXPECT_THAT(fill({0, 0}, -5).problem, HasSubstr("-5 rows"));
  EXPECT_THAT(fill({0, 0}, INT64_MAX).problem, HasSubstr("rows"));
}

SizedRun reshape(const Integers& indices, const Integers& from, const Integers& to) {
  const auto r = static_cast<int64_t>(from.size()), m = static_cast<int64_t>(to.size()), k = static_cast<int64_t>(indices.size()) / r;
  return {"SparseReshape",
          {},
          {tensor<int64_t>({k, r}, indices), tensor<int64_t>({r}, from), tensor<int64_t>({m}, to)},
          {{DType::kInt64, {k, m}}, {DType::kInt64, {m}}}};
}

TEST(SparseReshape, KeepsThePlaceOfEachValue) {
  const SizedRun run = reshape({0, 0, 1, 2, 3, 1}, {4, 3}, {2, -1, 2});
  ASSERT_THAT(run.problem, IsEmpty());
  EXPECT_THAT(run.outputs[0].as<int64_t>(), ElementsAre(0, 0, 0, 0, 2, 1, 1, 2, 0));
  EXPECT_THAT(run.outputs[1].as<int64_t>(), ElementsAre(2, 3, 2));
  EXPECT_THAT(reshape({}, {0, 3}, {-1, 3}).outputs[1].as<int64_t>(), ElementsAre(0, 3));
}

TEST(SparseReshape, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(reshape({0, 0}, {2, 3}, {4, -1}).problem, HasSubstr("[2,3] cannot become [4,-1]"));
  EXPECT_THAT(reshape({0, 0}, {2, 3}, {7}).problem, HasSubstr("cannot become"));
  EXPECT_THAT(reshape({0, 0}, {2, 3}, {-1, -1}).problem, HasSubstr("cannot become"));
  EXPECT_THAT(reshape({0, 0}, {INT64_MAX, 3}, {-1}).problem, HasSubstr("cannot become"));
  EXPECT_THAT(reshape({0, 3}, {2, 3}, {6}).problem, HasSubstr("index 3 is outside of [2,3]"));
}

SizedRun reduce(const std::string& reduction, const Integers& segments, std::optional<int64_t> count = std::nullopt) {
  const auto rows = static_cast<int64_t>(segments.size());
  std::vector<float> values(static_cast<size_t>(2 * rows));
  std::iota(values.begin(), values.end(), 0.0F);
  std::vector<Held> inputs = {tensor<float>({rows, 2}, values), tensor<int64_t>({rows}, segments)};
  if (count) inputs.push_back(tensor<int64_t>({}, {*count}));
  return {"SegmentReduce", with_attributes({{"reduction", reduction}}), std::move(inputs), {{DType::kFloat32, {0, 2}, false}}};
}

TEST(SegmentReduce, SumsRowsThatBelongTogether) {
  EXPECT_THAT(reduce("sum", {0, 0, 2}).outputs[0].as<float>(), ElementsAre(2, 4, 0, 0, 4, 5));
  EXPECT_THAT(reduce("mean", {0, 0, 2}).outputs[0].as<float>(), ElementsAre(1, 2, 0, 0, 4, 5));
  EXPECT_THAT(reduce("sqrt_n", {1, 1, 1, 1}).outputs[0].as<float>(), ElementsAre(0, 0, 6, 8));
  EXPECT_THAT(reduce("sum", {1}, 3).outputs[0].as<float>(), ElementsAre(0, 0, 0, 1, 0, 0));
  EXPECT_THAT(reduce("sum", {}).outputs[0].as<float>(), IsEmpty());
}

TEST(SegmentReduce, RefusesSegmentsThatAreNotThere) {
  EXPECT_THAT(reduce("sum", {3}, 3).problem, HasSubstr("segment 3 of 3"));
  EXPECT_THAT(reduce("sum", {-1, 0}).problem, HasSubstr("segment -1"));
  EXPECT_THAT(reduce("sum", {INT64_MAX - 1}).problem, HasSubstr("segments"));
  EXPECT_THAT(reduce("max", {0}).problem, HasSubstr("'max'"));
}

}  // namespace
}  // namespace serin::kernels::ref
