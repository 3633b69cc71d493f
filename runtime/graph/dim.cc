// dim.cc: a dimension is a sum of terms, each a coefficient times a product of atoms. An atom is a symbol, floor(a / b) or max(a, b).
//
// The form is canonical, so that equal dimensions print alike and compare by their parts: terms are sorted (higher degree first), atoms
// within a term are sorted by their text, a zero coefficient is dropped, and floor(a / c) by a number takes whole multiples of c out:
//   floor((5n + 3) / 2) = 2n + 1 + floor((n + 1) / 2)
// Chains of strided layers nest such divisions; floor((floor(x/a) + c) / b) = floor((x + ac) / (ab)) keeps them flat.
//
// A hostile model can square a dimension forty times. A dimension that grows past kMaxTerms, kMaxDegree or kMaxText becomes a fresh symbol
// "?complex:N": equal to nothing else, which is always safe, and gone once the real numbers are bound.

#include "runtime/graph/dim.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <set>

namespace serin::graph {
namespace {

constexpr size_t kMaxTerms = 64;
constexpr size_t kMaxDegree = 16;
constexpr size_t kMaxText = 1024;
constexpr int kMaxCases = 3;  // of a max within a max, when a sign is looked for

int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

int64_t saturating_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a > 0) == (b > 0) ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return saturating_mul(a, -1);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

struct Atom {
  enum class Kind { kSymbol, kFloorDiv, kMax };
  Kind kind = Kind::kSymbol;
  std::string text;  ///< the symbol's name, or the whole expression: with the kind, the identity of the atom
  Dim a, b;
};
using AtomPtr = std::shared_ptr<const Atom>;

struct Term {
  std::vector<AtomPtr> atoms;  ///< sorted by text, repeated for powers
  int64_t coefficient = 1;
};
using Terms = std::vector<Term>;

int compare(const Atom& a, const Atom& b) { return a.kind != b.kind ? (a.kind < b.kind ? -1 : 1) : a.text.compare(b.text); }

bool atom_less(const AtomPtr& a, const AtomPtr& b) { return compare(*a, *b) < 0; }

int compare(const std::vector<AtomPtr>& a, const std::vector<AtomPtr>& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (const int order = compare(*a[i], *b[i]); order != 0) return order;
  }
  return 0;
}

/// A name that reads as one word is itself; any other is quoted.
std::string symbol_text(const std::string& name) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '?' || c == '/' || c == ':';
  };
  const bool word = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) && std::ranges::all_of(name, plain);
  return word ? name : '"' + name + '"';
}

}  // namespace

struct Dim::Poly {
  Terms terms;
};

/// What the functions below need from inside a Dim.
struct DimParts {
  static Terms terms(const Dim& dim) {
    if (dim.poly_) return dim.poly_->terms;
    return dim.number_ == 0 ? Terms{} : Terms{Term{{}, dim.number_}};
  }

  static Dim make(Terms terms) {
    std::ranges::sort(terms, [](const Term& a, const Term& b) { return compare(a.atoms, b.atoms) < 0; });
    Terms merged;
    for (Term& term : terms) {
      if (!merged.empty() && compare(merged.back().atoms, term.atoms) == 0) {
        merged.back().coefficient = saturating_add(merged.back().coefficient, term.coefficient);
      } else {
        merged.push_back(std::move(term));
      }
    }
    std::erase_if(merged, [](const Term& term) { return term.coefficient == 0; });
    if (merged.empty()) return Dim(0);
    if (merged.size() == 1 && merged[0].atoms.empty()) return Dim(merged[0].coefficient);
    if (merged.size() > kMaxTerms || merged[0].atoms.size() > kMaxDegree) return too_complex();
    Dim dim;
    dim.poly_ = std::make_shared<const Dim::Poly>(Dim::Poly{std::move(merged)});
    return dim;
  }

  static Dim atom(Atom::Kind kind, std::string text, const Dim& a, const Dim& b) {
    if (kind != Atom::Kind::kSymbol && text.size() > kMaxText) return too_complex();
    return make({Term{{std::make_shared<const Atom>(Atom{kind, std::move(text), a, b})}, 1}});
  }

  static Dim too_complex() {
    static std::atomic<uint64_t> count{0};
    return Dim::symbol("?complex:" + std::to_string(++count));
  }

  static Dim of_term(const Term& term) { return make({term}); }

  /// a / b where every term of a is a multiple of the single term b; nothing otherwise.
  static std::optional<Dim> divide_exactly(const Dim& a, const Term& b) {
    if (b.coefficient == 0) return std::nullopt;
    Terms quotient;
    for (const Term& term : terms(a)) {
      if (term.coefficient % b.coefficient != 0 || (b.coefficient == -1 && term.coefficient == std::numeric_limits<int64_t>::min()))
        return std::nullopt;
      if (!std::ranges::includes(term.atoms, b.atoms, atom_less)) return std::nullopt;
      Term part{{}, term.coefficient / b.coefficient};
      std::ranges::set_difference(term.atoms, b.atoms, std::back_inserter(part.atoms), atom_less);
      quotient.push_back(std::move(part));
    }
    return make(std::move(quotient));
  }

  /// a / b where that is a polynomial: its terms come out one after the other, the highest first; nothing otherwise.
  static std::optional<Dim> divide_by_polynomial(Dim a, const Dim& b) {
    const Term highest = terms(b).front();
    Dim quotient = 0;
    for (size_t step = 0; step <= kMaxTerms; ++step) {
      const Terms rest = terms(a);
      if (rest.empty()) return quotient;
      const auto part = divide_exactly(of_term(rest.front()), highest);
      if (!part) return std::nullopt;
      quotient = quotient + *part;
      a = a - *part * b;
    }
    return std::nullopt;
  }

  /// floor(a / divisor) for a number > 1: whole multiples come out, what is left stays under one division.
  static Dim divide_by_number(const Dim& a, int64_t divisor) {
    Terms whole, rest;
    for (const Term& term : terms(a)) {
      const int64_t quotient = graph::floor_div(term.coefficient, divisor);
      whole.push_back({term.atoms, quotient});
      rest.push_back({term.atoms, term.coefficient - quotient * divisor});
    }
    Dim outside = make(std::move(whole));
    const Dim inside = make(std::move(rest));
    if (inside.known()) return outside;  // in 0 .. divisor - 1
    if (const auto flat = flatten(inside, divisor)) return outside + *flat;
    return outside + atom(Atom::Kind::kFloorDiv, "floor((" + inside.str() + ") / " + std::to_string(divisor) + ")", inside, divisor);
  }

  /// floor((floor(x / a) + c) / divisor) as one division.
  static std::optional<Dim> flatten(const Dim& inside, int64_t divisor) {
    const Terms parts = terms(inside);
    if (parts[0].coefficient != 1 || parts[0].atoms.size() != 1 || parts[0].atoms[0]->kind != Atom::Kind::kFloorDiv) return std::nullopt;
    if (parts.size() > 2 || (parts.size() == 2 && !parts[1].atoms.empty())) return std::nullopt;
    const Atom& inner = *parts[0].atoms[0];
    const auto inner_divisor = inner.b.value();
    int64_t product = 0;
    if (!inner_divisor || *inner_divisor <= 0 || __builtin_mul_overflow(*inner_divisor, divisor, &product)) return std::nullopt;
    const int64_t added = parts.size() == 2 ? parts[1].coefficient : 0;
    return floor_div(inner.a + Dim(added) * inner.b, Dim(product));
  }

  static bool nonnegative(const Atom& atom) {
    switch (atom.kind) {
      case Atom::Kind::kSymbol: return true;
      case Atom::Kind::kFloorDiv: return atom.a.nonnegative() && atom.b.nonnegative();
      case Atom::Kind::kMax: return atom.a.nonnegative() || atom.b.nonnegative();
    }
    return false;
  }

  /// By the signs of the terms; where they do not tell, by cases: max(a, b) is one of a and b, and no less than either. This is how it is seen
  /// that min(seq, 512) = seq + 512 - max(seq, 512) is at least 0 and at most seq: transformers slice their table of positions so.
  static bool nonnegative(const Dim& dim, int cases) {
    const Terms parts = terms(dim);
    const auto sure = [](const Term& term) {
      return term.coefficient >= 0 && std::ranges::all_of(term.atoms, [](const AtomPtr& atom) { return nonnegative(*atom); });
    };
    if (std::ranges::all_of(parts, sure)) return true;
    if (cases == 0) return false;
    for (const Term& term : parts) {
      if (term.atoms.size() != 1 || term.atoms[0]->kind != Atom::Kind::kMax) continue;
      const Dim rest = dim - of_term(term);
      const bool a = nonnegative(rest + term.atoms[0]->a * Dim(term.coefficient), cases - 1);
      const bool b = nonnegative(rest + term.atoms[0]->b * Dim(term.coefficient), cases - 1);
      if (term.coefficient > 0 ? a || b : a && b) return true;
    }
    return false;
  }

  static Dim bind(const Atom& atom, const Bindings& bindings) {
    switch (atom.kind) {
      case Atom::Kind::kSymbol: {
        const auto found = bindings.find(atom.text);
        return found == bindings.end() ? Dim::symbol(atom.text) : Dim(found->second);
      }
      case Atom::Kind::kFloorDiv: return floor_div(atom.a.bind(bindings), atom.b.bind(bindings));
      case Atom::Kind::kMax: return max(atom.a.bind(bindings), atom.b.bind(bindings));
    }
    return 0;
  }

  static void collect_symbols(const Dim& dim, std::set<std::string>& found) {
    for (const Term& term : terms(dim)) {
      for (const AtomPtr& atom : term.atoms) {
        if (atom->kind == Atom::Kind::kSymbol)
          found.insert(atom->text);
        else
          collect_symbols(atom->a, found), collect_symbols(atom->b, found);
      }
    }
  }
};

Dim::Dim(int64_t value) : number_(value) {}

Dim Dim::symbol(std::string name) { return DimParts::atom(Atom::Kind::kSymbol, std::move(name), 0, 0); }

std::optional<int64_t> Dim::value() const { return poly_ ? std::nullopt : std::optional(number_); }

std::optional<std::string> Dim::symbol_name() const {
  if (!poly_ || poly_->terms.size() != 1) return std::nullopt;
  const Term& term = poly_->terms[0];
  if (term.coefficient != 1 || term.atoms.size() != 1 || term.atoms[0]->kind != Atom::Kind::kSymbol) return std::nullopt;
  return term.atoms[0]->text;
}

std::vector<std::string> Dim::symbols() const {
  std::set<std::string> found;
  DimParts::collect_symbols(*this, found);
  return {found.begin(), found.end()};
}

bool Dim::nonnegative() const { return DimParts::nonnegative(*this, kMaxCases); }

bool Dim::positive() const {
  if (!poly_) return number_ > 0;
  return poly_->terms.back().atoms.empty() && poly_->terms.back().coefficient > 0 && nonnegative();
}

Dim Dim::bind(const Bindings& bindings) const {
  if (!poly_) return *this;
  Dim sum = 0;
  for (const Term& term : poly_->terms) {
    Dim product = term.coefficient;
    for (const AtomPtr& atom : term.atoms) product = product * DimParts::bind(*atom, bindings);
    sum = sum + product;
  }
  return sum;
}

std::string Dim::str() const {
  if (!poly_) return std::to_string(number_);
  std::string text;
  for (const Term& term : poly_->terms) {
    const bool minus = term.coefficient < 0;
    text += text.empty() ? (minus ? "-" : "") : (minus ? " - " : " + ");
    std::string factors;
    if (term.atoms.empty() || (term.coefficient != 1 && term.coefficient != -1)) {
      factors = std::to_string(term.coefficient).substr(minus ? 1 : 0);
    }
    for (const AtomPtr& atom : term.atoms) {
      factors += factors.empty() ? "" : "*";
      factors += atom->kind == Atom::Kind::kSymbol ? symbol_text(atom->text) : atom->text;
    }
    text += factors;
  }
  return text;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (!a.poly_ && !b.poly_) return saturating_add(a.number_, b.number_);
  Terms terms = DimParts::terms(a);
  for (Term& term : DimParts::terms(b)) terms.push_back(std::move(term));
  return DimParts::make(std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  if (!a.poly_ && !b.poly_) return saturating_mul(a.number_, b.number_);
  Terms product;
  for (const Term& x : DimParts::terms(a)) {
    for (const Term& y : DimParts::terms(b)) {
      Term term{{}, saturating_mul(x.coefficient, y.coefficient)};
      std::ranges::merge(x.atoms, y.atoms, std::back_inserter(term.atoms), atom_less);
      product.push_back(std::move(term));
    }
  }
  return DimParts::make(std::move(product));
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (!a.poly_ && !b.poly_) return floor_div(a.number_, b.number_);
  if (!b.poly_ && b.number_ == 0) return 0;
  if (a == b) return 1;
  const Terms divisor = DimParts::terms(b);
  if (divisor.size() == 1) {
    if (const auto exact = DimParts::divide_exactly(a, divisor[0])) return *exact;
  } else if (const auto exact = DimParts::divide_by_polynomial(a, b)) {
    return *exact;
  }
  if (!b.poly_ && b.number_ > 1) return DimParts::divide_by_number(a, b.number_);
  return DimParts::atom(Atom::Kind::kFloorDiv, "floor((" + a.str() + ") / (" + b.str() + "))", a, b);
}

Dim max(const Dim& a, const Dim& b) {
  if (!a.poly_ && !b.poly_) return std::max(a.number_, b.number_);
  const Dim difference = a - b;
  if (difference.nonnegative()) return a;
  if ((b - a).nonnegative()) return b;
  std::string first = a.str(), second = b.str();
  if (first > second) return max(b, a);
  return DimParts::atom(Atom::Kind::kMax, "max(" + first + ", " + second + ")", a, b);
}

bool operator==(const Dim& a, const Dim& b) {
  if (!a.poly_ || !b.poly_) return !a.poly_ && !b.poly_ && a.number_ == b.number_;
  if (a.poly_ == b.poly_) return true;
  return std::ranges::equal(a.poly_->terms, b.poly_->terms,
                            [](const Term& x, const Term& y) { return x.coefficient == y.coefficient && compare(x.atoms, y.atoms) == 0; });
}

std::string print(const Dims& dims) {
  std::string text = "[";
  for (size_t axis = 0; axis < dims.size(); ++axis) text.append(axis ? "," : "").append(dims[axis].str());
  return text + "]";
}

std::optional<Shape> known_shape(const Dims& dims) {
  if (!Shape::fits(dims.size())) return std::nullopt;
  Shape shape;
  for (const Dim& dim : dims) {
    const auto value = dim.value();
    if (!value) return std::nullopt;
    shape.push_back(*value);
  }
  return shape;
}

Dims bind(const Dims& dims, const Bindings& bindings) {
  Dims bound;
  bound.reserve(dims.size());
  for (const Dim& dim : dims) bound.push_back(dim.bind(bindings));
  return bound;
}

Dims dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

}  // namespace serin::graph
