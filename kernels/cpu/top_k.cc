// top_k.cc: TopK of f32.
//
// An element and its place are one number of 64 bits, so that its order is that of the answer: the bits of a float as an integer that rises with it (NaN above
// all, both zeros the same), then the places backwards. A row is gone through once; what beats the k-th best so far is collected, and whenever twice k are there
// the best k stay. Most elements of a long row meet one comparison.

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/cpu/generic.h"
#include "kernels/cpu/ranges.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

using Entry = uint64_t;
constexpr int64_t kSmall = 1 << 14;  // a k

/// Rises with x.
uint32_t rank_of(float x) {
  if (x != x) return UINT32_MAX;
  const auto bits = std::bit_cast<uint32_t>(x + 0.f);  // -0 + 0 is +0
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

class BestOfRow {
 public:
  BestOfRow(int64_t k, bool largest) : k_(static_cast<size_t>(k)), largest_(largest), room_(std::max<size_t>(2 * k_, 64)) {
    entries_.reserve(room_);
  }

  /// The best k of n elements `step` apart, in order.
  const std::vector<Entry>& of(const float* x, int64_t step, int64_t n) {
    entries_.clear();
    int64_t i = 0;
    for (; i < std::min<int64_t>(n, static_cast<int64_t>(room_)); ++i) entries_.push_back(entry(x[i * step], i));
    keep_best();
    if (i < n) {
      step == 1 ? rest(x, i, n) : strided_rest(x, step, i, n);
      keep_best();
    }
    std::ranges::sort(entries_, std::greater<>());
    return entries_;
  }

  static int64_t place(Entry entry) { return static_cast<int64_t>(~static_cast<uint32_t>(entry)); }

 private:
  Entry entry(float x, int64_t place) const {
    const uint32_t rank = rank_of(x);
    return static_cast<Entry>(largest_ ? rank : ~rank) << 32 | ~static_cast<uint32_t>(place);
  }
  /// A later element must be better than the worst that is kept, not as good. True for what only the order of NaN decides.
  bool may_be_better(float x) const { return largest_ ? !(x <= worst_) : !(x >= worst_); }

  void rest(const float* x, int64_t i, int64_t n) {
    constexpr int64_t kPiece = 32;
    for (; i + kPiece <= n; i += kPiece) {
      int32_t better = 0;
      if (largest_) {
        for (int64_t j = 0; j < kPiece; ++j) better |= x[i + j] <= worst_ ? 0 : 1;
      } else {
        for (int64_t j = 0; j < kPiece; ++j) better |= x[i + j] >= worst_ ? 0 : 1;
      }
      for (int64_t j = 0; better && j < kPiece; ++j) take(x[i + j], i + j);
    }
    for (; i < n; ++i) take(x[i], i);
  }
  void strided_rest(const float* x, int64_t step, int64_t i, int64_t n) {
    for (; i < n; ++i) take(x[i * step], i);
  }
  void take(float x, int64_t place) {
    if (!may_be_better(x)) return;
    const Entry made = entry(x, place);
    if (made < least_) return;
    entries_.push_back(made);
    if (entries_.size() == room_) keep_best();
  }

  void keep_best() {
    if (entries_.size() > k_) {
      std::nth_element(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(k_) - 1, entries_.end(), std::greater<>());
      entries_.resize(k_);
      least_ = entries_.back();
    } else {
      least_ = *std::ranges::min_element(entries_);
    }
    const auto rank = static_cast<uint32_t>(least_ >> 32);
    const uint32_t bits = largest_ ? rank : ~rank;
    worst_ = bits == UINT32_MAX ? std::bit_cast<float>(0x7fc00000u) : std::bit_cast<float>(bits >> 31 ? bits & 0x7fffffffu : ~bits);
  }

  const size_t k_;
  const bool largest_;
  const size_t room_;
  std::vector<Entry> entries_;
  Entry least_ = 0;  // of those that are kept
  float worst_ = 0;  // its element
};

}  // namespace

Prepared top_k(const Simd&, const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  if (op.name != "TopK") return refuse(why, "not TopK");
  if (desc.inputs.size() != 2 || desc.inputs[0].dtype != DType::kFloat32 || desc.inputs[1].dtype != DType::kInt64)
    return refuse(why, "f32 only");
  const Shape& shape = desc.inputs[0].shape;
  const int64_t given = op.attributes.integer("axis", -1), axis = given < 0 ? given + static_cast<int64_t>(shape.rank()) : given;
  if (axis < 0 || axis >= static_cast<int64_t>(shape.rank())) return refuse(why, "axis out of range");
  const auto along = static_cast<size_t>(axis);
  if (shape[along] > INT32_MAX) return refuse(why, "too many elements along the axis");
  const bool largest = op.attributes.integer("largest", 1) != 0;  // `sorted` 0 allows any order: this one, too
  return make_kernel([along, largest](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape& x = in[0].shape;
    const int64_t n = x[along], inner = product(x, along + 1, x.rank()), rows = product(x, 0, along) * inner;
    if (in[1].elements() != 1) return "k has " + std::to_string(in[1].elements()) + " elements, it must be one number";
    const int64_t k = in[1].as<const int64_t>()[0];
    if (k < 0 || k > n) return "k is " + std::to_string(k) + ", axis " + std::to_string(along) + " has " + std::to_string(n);
    for (TensorView& y : out) y.shape[along] = k;
    if (k == 0) return kOk;
    const Stream alone{};  // a large k wants memory, and nothing that workers do may fail
    parallel_rows(k <= kSmall ? stream : alone, rows, 2 * n, [&](int64_t begin, int64_t end) {
      BestOfRow best(k, largest);
      for (int64_t row = begin; row < end; ++row) {
        const float* from = in[0].as<const float>() + row / inner * n * inner + row % inner;
        int64_t to = row / inner * k * inner + row % inner;
        for (const Entry entry : best.of(from, inner, n)) {
          const int64_t place = BestOfRow::place(entry);
          out[0].as<float>()[to] = from[place * inner];
          if (out.size() > 1) out[1].as<int64_t>()[to] = place;
          to += inner;
        }
      }
    });
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
