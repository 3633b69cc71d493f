// lower_einsum.cc: lowers Einsum to strided copies, sums, products and matrix products, which have fast kernels already.
//
//   one operand     its diagonals and its order are strides; labels that the result does not name are summed
//   two operands    labels of both that are still needed are the batch, labels of both that are not are contracted, the rest are rows and
// columns:
//                   y[batch, rows, columns] = a[batch, rows, contracted] b[batch, contracted, columns]
//   more            the pair with the smallest product first, until one is left

#include <algorithm>
#include <limits>
#include <map>

#include "kernels/indexing.h"
#include "runtime/engine/lower/lowering.h"
#include "runtime/graph/ops/einsum.h"

namespace serin::engine {

namespace {

/// A tensor and the label of each of its axes.
struct Term {
  TensorId tensor;
  std::string labels;
};

bool has(std::string_view labels, char label) { return labels.find(label) != std::string_view::npos; }

/// The labels for which `keep` holds, each once.
template <class F>
std::string filtered(std::string_view labels, F&& keep) {
  std::string result;
  for (const char label : labels) {
    if (keep(label) && !has(result, label)) result += label;
  }
  return result;
}

class EinsumLowering {
 public:
  explicit EinsumLowering(Lowering& at) : at_(at) {}
  Status run();

 private:
  Shape shape_of(std::string_view labels) const;
  int64_t elements(std::string_view labels) const;
  /// `term` with its axes in the order of `labels`, diagonals taken, dimensions of 1 repeated; into `target` where given.
  Result<TensorId> arranged(const Term& term, std::string_view labels, TensorId target = kNoTensor);
  /// `term` without the labels that nobody needs.
  Result<Term> summed(const Term& term, std::string_view needed);
  Result<Term> contracted(const Term& a, const Term& b, std::string_view needed);
  Result<Term> multiplied(const Term& a, const Term& b, std::string_view batch, std::string_view rows, std::string_view columns);
  std::string needed_beside(const std::vector<Term>& terms, size_t a, size_t b) const;
  std::pair<size_t, size_t> cheapest_pair(const std::vector<Term>& terms) const;

  Lowering& at_;
  std::string result_;
  std::map<char, int64_t> sizes_;
};

Shape EinsumLowering::shape_of(std::string_view labels) const {
  Shape shape;
  for (const char label : labels) shape.push_back(sizes_.at(label));
  return shape;
}

int64_t EinsumLowering::elements(std::string_view labels) const {
  int64_t product = 1;
  for (const char label : labels) {
    if (__builtin_mul_overflow(product, sizes_.at(label), &product)) return std::numeric_limits<int64_t>::max();
  }
  return product;
}

Result<TensorId> EinsumLowering::arranged(const Term& term, std::string_view labels, TensorId target) {
  if (labels.size() > Shape::kMaxRank) return Lowering::refuse("needs an intermediate result of rank " + std::to_string(labels.size()));
  const Shape& from = at_.shape(term.tensor);
  const kernels::Strides steps = kernels::row_major_strides(from);
  std::vector<int64_t> strides;
  for (const char label : labels) {
    int64_t stride = 0;
    for (size_t axis = 0; axis < from.rank(); ++axis) {
      if (term.labels[axis] == label && from[axis] != 1) stride += steps[axis];
    }
    strides.push_back(stride);
  }
  if (target == kNoTensor) target = at_.temporary(at_.dtype(term.tensor), shape_of(labels));
  SERIN_CHECK(at_.strided(target, term.tensor, strides));
  return target;
}

Result<Term> EinsumLowering::summed(const Term& term, std::string_view needed) {
  const std::string kept = filtered(term.labels, [&](char label) { return has(needed, label); });
  const std::string gone = filtered(term.labels, [&](char label) { return !has(needed, label); });
  if (gone.empty()) return term;
  SERIN_TRY(const TensorId ordered, arranged(term, kept + gone));
  kernels::Reduce reduce;
  for (size_t i = 0; i < gone.size(); ++i) reduce.axes.push_back(static_cast<int64_t>(kept.size() + i));
  const TensorId sum = at_.temporary(at_.dtype(term.tensor), shape_of(kept));
  SERIN_CHECK(at_.emit(std::move(reduce), {ordered}, {sum}));
  return Term{sum, kept};
}

/// Nothing to contract: a product with broadcasting.
Result<Term> EinsumLowering::multiplied(const Term& a, const Term& b, std::string_view batch, std::string_view rows,
                                        std::string_view columns) {
  const std::string left = std::string(batch).append(rows), right = std::string(batch).append(columns);
  SERIN_TRY(const TensorId x, arranged(a, left));
  SERIN_TRY(const TensorId y, arranged(b, right));
  Shape wide = shape_of(left);
  for (size_t i = 0; i < columns.size(); ++i) wide.push_back(1);
  Shape tall = shape_of(batch);
  for (size_t i = 0; i < rows.size(); ++i) tall.push_back(1);
  for (const char label : columns) tall.push_back(sizes_.at(label));
  const std::string labels = left + std::string(columns);
  const TensorId result = at_.temporary(at_.dtype(a.tensor), shape_of(labels));
  SERIN_CHECK(at_.emit(kernels::Binary{kernels::BinaryFn::kMul}, {at_.view(x, wide), at_.view(y, tall)}, {result}));
  return Term{result, labels};
}

Result<Term> EinsumLowering::contracted(const Term& first, const Term& second, std::string_view needed) {
  SERIN_TRY(const Term a, summed(first, std::string(needed) + second.labels));
  SERIN_TRY(const Term b, summed(second, std::string(needed) + first.labels));
  const std::string batch = filtered(a.labels, [&](char label) { return has(b.labels, label) && has(needed, label); });
  const std::string inner = filtered(a.labels, [&](char label) { return has(b.labels, label) && !has(needed, label); });
  const std::string rows = filtered(a.labels, [&](char label) { return !has(b.labels, label); });
  const std::string columns = filtered(b.labels, [&](char label) { return !has(a.labels, label); });
  const std::string labels = batch + rows + columns;
  if (labels.size() > Shape::kMaxRank) return Lowering::refuse("needs an intermediate result of rank " + std::to_string(labels.size()));
  if (elements(labels) > graph::kMaxElements) return Lowering::refuse("needs an intermediate result beyond the limit of elements");
  if (inner.empty()) return multiplied(a, b, batch, rows, columns);

  SERIN_TRY(const TensorId x, arranged(a, batch + rows + inner));
  SERIN_TRY(const TensorId y, arranged(b, batch + inner + columns));
  const int64_t m = elements(rows), k = elements(inner), n = elements(columns);
  const auto matrix = [&](int64_t height, int64_t width) { return Shape{elements(batch), height, width}; };
  const TensorId product = at_.temporary(at_.dtype(a.tensor), matrix(m, n));
  SERIN_CHECK(at_.emit(kernels::MatMul{}, {at_.view(x, matrix(m, k)), at_.view(y, matrix(k, n))}, {product}));
  return Term{at_.view(product, shape_of(labels)), labels};
}

std::string EinsumLowering::needed_beside(const std::vector<Term>& terms, size_t a, size_t b) const {
  std::string needed = result_;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (i != a && i != b) needed += terms[i].labels;
  }
  return needed;
}

std::pair<size_t, size_t> EinsumLowering::cheapest_pair(const std::vector<Term>& terms) const {
  std::pair<size_t, size_t> best{0, 1};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (size_t a = 0; a < terms.size(); ++a) {
    for (size_t b = a + 1; b < terms.size(); ++b) {
      const std::string needed = needed_beside(terms, a, b);
      const int64_t size = elements(filtered(terms[a].labels + terms[b].labels, [&](char label) { return has(needed, label); }));
      if (size < least) least = size, best = {a, b};
    }
  }
  return best;
}

Status EinsumLowering::run() {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < at_.node().inputs.size(); ++i) {
    if (at_.bounded(at_.input(i))) return Lowering::refuse("an operand has a size that depends on the data");
    ranks.push_back(at_.shape(at_.input(i)).rank());
  }
  SERIN_TRY(const graph::Einsum einsum, graph::parse_einsum(at_.node().text("equation", ""), ranks));
  result_ = einsum.result;
  std::vector<Term> terms;
  for (size_t i = 0; i < ranks.size(); ++i) {
    terms.push_back({at_.input(i), einsum.operands[i]});
    for (size_t axis = 0; axis < ranks[i]; ++axis) {
      int64_t& size = sizes_.emplace(einsum.operands[i][axis], 1).first->second;
      if (const int64_t here = at_.shape(at_.input(i))[axis]; here != 1) size = here;
    }
  }
  while (terms.size() > 1) {
    const auto [a, b] = cheapest_pair(terms);
    SERIN_TRY(Term product, contracted(terms[a], terms[b], needed_beside(terms, a, b)));
    terms[a] = std::move(product);
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(b));
  }
  SERIN_TRY(const Term last, summed(terms[0], result_));
  SERIN_CHECK(arranged(last, result_, at_.output()));
  return {};
}

}  // namespace

Status lower_einsum(Lowering& at) { return EinsumLowering(at).run(); }

}  // namespace serin::engine
