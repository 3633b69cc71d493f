// text_hash.cc: HashBucket: the bucket of each text, and SparseCross: the buckets of the combinations of features.

#include <algorithm>
#include <vector>

#include "kernels/ref/fingerprint.h"
#include "kernels/ref/text_families.h"

namespace serin::kernels::ref {

namespace {

/// The values of one crossed feature, by row: those of a sparse tensor, or of a dense one [rows, values].
class Column {
 public:
  /// False if an index is out of order or out of range.
  bool read_sparse(const TensorView& indices, const TensorView& values, int64_t rows) {
    begins_.assign(static_cast<size_t>(rows) + 1, 0);
    const auto* index = indices.as<const int64_t>();
    int64_t last = 0;
    for (int64_t i = 0; i < values.elements(); ++i, index += 2) {
      if (index[0] < last || index[0] >= rows) return false;
      last = index[0];
      ++begins_[static_cast<size_t>(last) + 1];
    }
    for (size_t row = 0; row < static_cast<size_t>(rows); ++row) begins_[row + 1] += begins_[row];
    take(values);
    return true;
  }
  void read_dense(const TensorView& values) {
    const int64_t rows = values.shape[0], width = values.shape[1];
    for (int64_t row = 0; row <= rows; ++row) begins_.push_back(row * width);
    take(values);
  }

  int64_t count(int64_t row) const { return begins_[static_cast<size_t>(row) + 1] - begins_[static_cast<size_t>(row)]; }
  uint64_t hash(int64_t row, int64_t place) const { return hashes_[static_cast<size_t>(begins_[static_cast<size_t>(row)] + place)]; }

 private:
  void take(const TensorView& values) {
    if (values.dtype == DType::kInt64) {
      for (const int64_t number : values.span<const int64_t>()) hashes_.push_back(static_cast<uint64_t>(number));
    } else {
      for (const std::string& text : strings_of(values)) hashes_.push_back(fingerprint64(text));
    }
  }

  std::vector<int64_t> begins_;
  std::vector<uint64_t> hashes_;
};

constexpr int64_t kMostRows = int64_t{1} << 24;  // a shape may come with a request, and rows need no values

bool is_hashed(DType dtype) { return dtype == DType::kString || dtype == DType::kInt64; }

}  // namespace

Prepared hash_bucket(const GenericDesc& desc, std::string& why) {
  const int64_t buckets = desc.attributes.integer("buckets", 0);
  if (desc.inputs[0].dtype != DType::kString || desc.outputs[0].dtype != DType::kInt64) return refuse(why, "strings go in, i64 comes out");
  if (buckets < 1) return refuse(why, "there are " + std::to_string(buckets) + " buckets");
  return make_kernel([count = static_cast<uint64_t>(buckets)](Stream&, Inputs in, Outputs out) -> Fault {
    const auto x = strings_of(in[0]);
    std::ranges::transform(x, out[0].as<int64_t>(),
                           [&](const std::string& text) { return static_cast<int64_t>(fingerprint64(text) % count); });
    return kOk;
  });
}

/// Operands: indices [k, 2], values [k], shape [2] of each sparse feature, then dense ones [rows, values]. In each row all combinations with
/// one value of each feature, of which that of the last one changes first. Outputs: indices, numbers of buckets, shape.
Prepared sparse_cross(const GenericDesc& desc, std::string& why) {
  const int64_t sparse = desc.attributes.integer("sparse", 0), buckets = desc.attributes.integer("buckets", 0);
  const auto operands = static_cast<int64_t>(desc.inputs.size());
  if (buckets < 0 || sparse < 0 || sparse > operands / 3 || operands == 0) return refuse(why, "the operands are no features");
  for (int64_t i = 0; i < operands; ++i) {
    const TensorDesc& each = desc.inputs[static_cast<size_t>(i)];
    const bool values = i >= 3 * sparse || i % 3 == 1;
    if (values ? !is_hashed(each.dtype) : each.dtype != DType::kInt64) return refuse(why, "features must be strings or i64");
    if (each.shape.rank() != ((i < 3 * sparse && i % 3 != 0) ? 1U : 2U)) return refuse(why, "a feature must be a matrix");
  }
  const auto modulus = static_cast<uint64_t>(buckets == 0 ? INT64_MAX : buckets);
  const auto key = static_cast<uint64_t>(desc.attributes.integer("key", 0));
  return make_kernel([=](Stream&, Inputs in, Outputs out) -> Fault {
    const size_t lists = 3 * static_cast<size_t>(sparse);
    const int64_t rows = sparse > 0 ? in[2].as<const int64_t>()[0] : in[0].shape[0];
    if (rows < 0 || rows > kMostRows) return "a feature has " + std::to_string(rows) + " rows";
    std::vector<Column> columns;
    for (size_t i = 0; i < in.size(); i += i < lists ? 3 : 1) {
      Column& column = columns.emplace_back();
      const int64_t own = i < lists ? in[i + 2].as<const int64_t>()[0] : in[i].shape[0];
      if (own != rows) return "features have " + std::to_string(rows) + " and " + std::to_string(own) + " rows";
      if (i >= lists)
        column.read_dense(in[i]);
      else if (in[i].elements() != 2 * in[i + 1].elements() || !column.read_sparse(in[i], in[i + 1], rows))
        return Fault("indices are out of order, or beyond the rows");
    }
    int64_t total = 0, most = 0;
    std::vector<int64_t> counts(static_cast<size_t>(rows), 1);
    for (int64_t row = 0; row < rows; ++row) {
      int64_t& count = counts[static_cast<size_t>(row)];
      for (const Column& column : columns)
        if (__builtin_mul_overflow(count, column.count(row), &count)) return Fault("there are too many combinations");
      most = std::max(most, count);
      if (__builtin_add_overflow(total, count, &total)) return Fault("there are too many combinations");
    }
    const bool filled = out[1].data && out[0].data;
    out[0].shape = Shape{total, 2};
    out[1].shape = Shape{total};
    if (out[2].data) out[2].as<int64_t>()[0] = rows, out[2].as<int64_t>()[1] = most;
    if (!filled) return kOk;
    auto *index = out[0].as<int64_t>(), *bucket = out[1].as<int64_t>();
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < counts[static_cast<size_t>(row)]; ++i) {
        std::vector<int64_t> places(columns.size());
        int64_t left = i;
        for (size_t c = columns.size(); c-- > 0; left /= columns[c].count(row)) places[c] = left % columns[c].count(row);
        uint64_t hash = key;
        for (size_t c = 0; c < columns.size(); ++c) hash = joined_fingerprint(hash, columns[c].hash(row, places[c]));
        *index++ = row;
        *index++ = i;
        *bucket++ = static_cast<int64_t>(hash % modulus);
      }
    }
    return kOk;
  });
}

}  // namespace serin::kernels::ref
