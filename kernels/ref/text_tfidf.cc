// text_tfidf.cc: TfIdfVectorizer: counts the n-grams of a pool in each row.
//
// Tokens (integers or strings) become numbers first, those that no n-gram has become -1; an n-gram is then a short list of numbers. The n
// tokens of an n-gram may lie 1 .. max_skip_count + 1 apart, each distance on its own; single tokens are counted once.

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "kernels/ref/text_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

struct Vectorizer {
  std::unordered_map<std::string, int32_t> words;
  std::unordered_map<int64_t, int32_t> numbers;
  std::map<std::vector<int32_t>, size_t> grams;  ///< to the place in the pool
  std::vector<int64_t> columns;                  ///< of the output, by place in the pool
  std::vector<double> weights;                   ///< by place in the pool; empty: 1
  int64_t shortest = 1, longest = 1, skips = 0;
  bool counts = true, weighs = false;  ///< TF, IDF, or both
};

template <class Token, class Ids>
std::vector<int32_t> intern(const std::vector<Token>& pool, Ids& ids) {
  std::vector<int32_t> tokens;
  for (const Token& token : pool) tokens.push_back(ids.emplace(token, static_cast<int32_t>(ids.size())).first->second);
  return tokens;
}

/// The pool cut into n-grams: counts[n - 1] is where those of n tokens begin.
bool cut_pool(const std::vector<int32_t>& pool, const std::vector<int64_t>& counts, Vectorizer& v, std::string& why) {
  for (size_t n = 1; n <= counts.size(); ++n) {
    const int64_t begin = counts[n - 1], end = n < counts.size() ? counts[n] : static_cast<int64_t>(pool.size());
    if (begin < 0 || begin > end || end > static_cast<int64_t>(pool.size()) || static_cast<size_t>(end - begin) % n != 0) {
      why = "ngram_counts does not cut the pool into n-grams of " + std::to_string(n);
      return false;
    }
    for (auto at = pool.begin() + begin; at != pool.begin() + end; at += static_cast<std::ptrdiff_t>(n)) {
      v.grams.emplace(std::vector<int32_t>(at, at + static_cast<std::ptrdiff_t>(n)), v.grams.size());
    }
  }
  return true;
}

bool fill(const GenericDesc& desc, Vectorizer& v, std::string& why) {
  const Attributes& a = desc.attributes;
  const std::string mode = a.text("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return why = "mode is '" + mode + "', it must be TF, IDF or TFIDF", false;
  v.counts = mode != "IDF";
  v.weighs = mode != "TF";
  v.shortest = a.integer("min_gram_length", 1);
  v.longest = a.integer("max_gram_length", 1);
  v.skips = a.integer("max_skip_count", 0);
  const auto counts = a.integers("ngram_counts");
  if (v.shortest < 1 || v.longest < v.shortest || v.longest > static_cast<int64_t>(counts.size()) || v.skips < 0)
    return why = "min_gram_length, max_gram_length, max_skip_count and ngram_counts contradict each other", false;
  const bool strings = desc.inputs[0].dtype == DType::kString;
  const auto pool = strings ? intern(a.texts("pool_strings"), v.words) : intern(a.integers("pool_int64s"), v.numbers);
  if (!cut_pool(pool, counts, v, why)) return false;
  v.columns = a.integers("ngram_indexes");
  v.weights = a.numbers("weights");
  if (v.columns.size() < v.grams.size() || (!v.weights.empty() && v.weights.size() < v.grams.size()))
    return why = "ngram_indexes or weights has fewer elements than the pool has n-grams", false;
  return true;
}

std::vector<int32_t> tokens_of(const Vectorizer& v, const TensorView& x) {
  std::vector<int32_t> tokens;
  const auto id = [](const auto& ids, const auto& token) {
    const auto found = ids.find(token);
    return found == ids.end() ? -1 : found->second;
  };
  if (x.dtype == DType::kString) {
    for (const std::string& word : strings_of(x)) tokens.push_back(id(v.words, word));
  } else if (x.dtype == DType::kInt32) {
    for (const int32_t number : x.span<const int32_t>()) tokens.push_back(id(v.numbers, number));
  } else {
    for (const int64_t number : x.span<const int64_t>()) tokens.push_back(id(v.numbers, number));
  }
  return tokens;
}

/// Adds one to `found` for each n-gram of the row.
void count_grams(const Vectorizer& v, std::span<const int32_t> row, std::vector<int64_t>& found) {
  const auto size = static_cast<int64_t>(row.size());
  std::vector<int32_t> gram;
  for (int64_t n = v.shortest; n <= v.longest; ++n) {
    for (int64_t distance = 1; distance <= (n == 1 ? 1 : std::min(v.skips + 1, size)); ++distance) {
      for (int64_t begin = 0; begin + (n - 1) * distance < size; ++begin) {
        gram.clear();
        for (int64_t k = 0; k < n && (gram.empty() || gram.back() >= 0); ++k)
          gram.push_back(row[static_cast<size_t>(begin + k * distance)]);
        if (const auto place = v.grams.find(gram); place != v.grams.end()) ++found[place->second];
      }
    }
  }
}

Fault run(const Vectorizer& v, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;
  const int64_t rows = x.rank() == 2 ? x[0] : 1, length = x.back(), width = out[0].shape.back();
  const std::vector<int32_t> tokens = tokens_of(v, in[0]);
  std::fill_n(out[0].as<float>(), out[0].elements(), 0.f);
  std::vector<int64_t> found(v.grams.size());
  for (int64_t row = 0; row < rows; ++row) {
    std::ranges::fill(found, 0);
    count_grams(v, std::span(tokens).subspan(static_cast<size_t>(row * length), static_cast<size_t>(length)), found);
    for (size_t place = 0; place < found.size(); ++place) {
      const int64_t column = v.columns[place];
      if (column < 0 || column >= width) return "ngram_indexes has " + std::to_string(column);
      if (found[place] == 0) continue;
      const double weight = v.weighs && !v.weights.empty() ? v.weights[place] : 1;
      out[0].as<float>()[row * width + column] = static_cast<float>((v.counts ? static_cast<double>(found[place]) : 1.0) * weight);
    }
  }
  return kOk;
}

}  // namespace

Prepared tf_idf_vectorizer(const GenericDesc& desc, std::string& why) {
  const DType dtype = desc.inputs[0].dtype;
  if (dtype != DType::kString && dtype != DType::kInt32 && dtype != DType::kInt64) return refuse_dtype(why, dtype);
  const size_t rank = desc.inputs[0].shape.rank();
  if (rank != 1 && rank != 2) return refuse(why, "needs [c] or [n, c], got " + desc.inputs[0].shape.str());
  Vectorizer vectorizer;
  if (!fill(desc, vectorizer, why)) return nullptr;
  return make_kernel([v = std::move(vectorizer)](Stream&, Inputs in, Outputs out) -> Fault { return run(v, in, out); });
}

}  // namespace serin::kernels::ref
